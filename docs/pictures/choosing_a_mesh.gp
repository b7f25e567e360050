# Draws choosing_a_mesh.svg: gnuplot choosing_a_mesh.gp
set terminal svg size 1080,560 font "DejaVu Sans,11" background rgb "white"
set output "choosing_a_mesh.svg"
unset border; unset tics; unset key
set xrange [0:108]; set yrange [0:56]
set style line 1 lc rgb "#30506c" lw 1.4

# Questions are rounded by colour, answers are white: x, y (centre), half width, half height.
question(x, y, w, h) = sprintf("set object rectangle from %f,%f to %f,%f fc rgb '#dce8f2' fs solid border lc rgb '#30506c'", x-w, y-h, x+w, y+h)
answer(x, y, w, h) = sprintf("set object rectangle from %f,%f to %f,%f fc rgb '#f8f4e4' fs solid border lc rgb '#8a6d1f'", x-w, y-h, x+w, y+h)
text(x, y, s) = sprintf("set label \"%s\" at %f,%f center front", s, x, y)
arrow(x1, y1, x2, y2) = sprintf("set arrow from %f,%f to %f,%f head filled size 1,18 ls 1 back", x1, y1, x2, y2)
yes(x, y, s) = sprintf("set label \"{/*0.9 %s}\" at %f,%f left tc rgb '#30506c' front", s, x, y)

eval question(54, 52, 17, 2.6); eval text(54, 52, "How many ranks does the job have?")
eval arrow(40, 49.4, 16, 44.6); eval yes(21, 48, "one")
eval arrow(54, 49.4, 46, 44.6); eval yes(51, 46.6, "one node")
eval arrow(68, 49.4, 88, 44.6); eval yes(80, 48, "several nodes")

eval question(15, 42, 14, 2.6); eval text(15, 42, "States and one sample fit?")
eval question(46, 42, 14, 2.6); eval text(46, 42, "They fit on one rank?")
eval question(88, 42, 17, 2.6); eval text(88, 42, "ZeRO-3's messages < computing?")

eval arrow(8, 39.4, 6, 34.6);   eval yes(7.8, 37, "yes")
eval arrow(18, 39.4, 21, 34.6); eval yes(20.5, 37, "no")
eval answer(5.5, 32, 5, 2.6);   eval text(5.5, 32, "as it is")
eval question(21, 32, 9.5, 2.6); eval text(21, 32, "Largest layer fits?")
eval arrow(18, 29.4, 10, 24.1); eval yes(15.5, 27, "yes")
eval arrow(23, 29.4, 25, 24.1); eval yes(24.8, 27, "no")
eval answer(9, 20.5, 8, 3.6);    eval text(9, 21.8, "ZeRO + offload"); eval text(9, 19.2, "--offload=DIR")
eval answer(26, 20.5, 8, 3.6);   eval text(26, 21.8, "the same, and"); eval text(26, 19.2, "tiled layers")

eval arrow(42, 39.4, 39, 34.6); eval yes(41.2, 37, "yes")
eval arrow(50, 39.4, 55, 34.6); eval yes(53.5, 37, "no")
eval answer(39, 32, 6.5, 2.6);  eval text(39, 32, "DDP or ZeRO")
eval question(56, 32, 8, 2.6);  eval text(56, 32, "Fast links?")
eval arrow(53, 29.4, 46, 24.1); eval yes(51, 27, "yes")
eval arrow(58, 29.4, 62, 24.1); eval yes(61, 27, "no")
eval answer(45, 20.5, 8, 3.6);  eval text(45, 21.8, "PP, ZeRO or TP:"); eval text(45, 19.2, "the quickest")
eval answer(63, 20.5, 8, 3.6);  eval text(63, 21.8, "PP, then"); eval text(63, 19.2, "ZeRO or TP")

eval arrow(84, 39.4, 80, 35.6); eval yes(83, 37.5, "yes: fast")
eval arrow(93, 39.4, 97, 34.6); eval yes(96, 37.5, "no: slow")
eval answer(79, 32, 9.5, 3.6);  eval text(79, 33.3, "ZeRO, or"); eval text(79, 30.7, "PP x TP x DP (+ ZeRO)")
eval question(98, 32, 8.5, 2.6); eval text(98, 32, "Fit on one rank?")
eval arrow(95, 29.4, 85, 24.1); eval yes(92, 27, "yes")
eval arrow(99, 29.4, 99.5, 24.1); eval yes(100, 27, "no")
eval answer(83.5, 20.5, 7, 3.6);  eval text(83.5, 21.8, "DDP or"); eval text(83.5, 19.2, "ZeRO-1")
eval answer(99.5, 20.5, 8, 3.6);  eval text(99.5, 21.8, "DP x PP x TP"); eval text(99.5, 19.2, "+ ZeRO-1")

# Which axis goes where.
set label "{/:Bold The order of the axes: ranks that talk most are neighbours}" at 3,12 left front
do for [i=0:4] { eval answer(12+21*i, 6.5, 9.5, 4) }
eval text(12, 8.8, "{/:Bold pp}");           eval text(12, 6.6, "hidden states");   eval text(12, 4.4, "{/*0.85 per micro-batch}")
eval text(33, 8.8, "{/:Bold dp\\\\_replicate}"); eval text(33, 6.6, "gradients");       eval text(33, 4.4, "{/*0.85 once a step}")
eval text(54, 8.8, "{/:Bold dp\\\\_shard}");     eval text(54, 6.6, "gradients, parameters"); eval text(54, 4.4, "{/*0.85 each step; fsdp each pass}")
eval text(75, 8.8, "{/:Bold cp}");           eval text(75, 6.6, "keys and values"); eval text(75, 4.4, "{/*0.85 per block}")
eval text(96, 8.8, "{/:Bold tp}");           eval text(96, 6.6, "hidden states");   eval text(96, 4.4, "{/*0.85 4 a block; within a node}")
do for [i=0:3] { eval arrow(21.5+21*i, 6.5, 23.5+21*i, 6.5) }
plot NaN
