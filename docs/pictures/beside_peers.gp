# Draws beside_peers.svg: gnuplot beside_peers.gp. Figures: the README's table, docs/benchmarks.md.
set terminal svg size 900,360 font "DejaVu Sans,12" background rgb "white"
set output "beside_peers.svg"
set title "Plait's training step as a fraction of the peer's time (line: equal)" font ",13" offset -14,0
set xrange [0:1.05]; set yrange [-0.7:7.7]
set xtics 0.25 nomirror textcolor "#222222"; set ytics nomirror scale 0 textcolor "#222222"; unset key
set border 3 lc rgb "#888888"; set grid xtics lc rgb "#dddddd"
set lmargin 44
set arrow from 1,-0.7 to 1,7.7 nohead lc rgb "#888888"
set style fill solid border lc rgb "#0b6fa4"
$ratios << EOD
7 0.15 "TorchBraid, MNIST, layer-parallel, 2 ranks"
6 0.25 "PyTorch DTensor, Llama 33.6 M, tp=2"
5 0.31 "PyTorch FSDP2, Llama 33.6 M, 2 ranks"
4 0.39 "torch.nn.GRU, one process"
3 0.40 "TorchBraid, GRU, layer-parallel, 2 ranks"
2 0.49 "PyTorch DDP, Llama 33.6 M, 2 ranks"
1 0.59 "PyTorch Schedule1F1B, Llama 33.6 M, pp=2"
0 0.74 "nanoGPT's setting, PyTorch eager, float32"
EOD
plot $ratios using ($2/2):1:($2/2):(0.36):ytic(3) with boxxyerror lc rgb "#3d94c4", \
     "" using ($2+0.015):1:(sprintf("%.2f", $2)) with labels left
