// XBraid's histories were printed with %.16e, PyMGRIT's with %.12e.
#include "mgrit/testing/reference_histories.h"

#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "mgrit/examples/dahlquist_bdf2_problem.h"
#include "mgrit/examples/dahlquist_problem.h"
#include "mgrit/examples/heat_problem.h"
#include "mgrit/examples/lorenz_problem.h"

namespace plait::mgrit::testing {
namespace {

using examples::DahlquistProblem;
using examples::HeatProblem;
using examples::LorenzProblem;
using Factory = std::function<std::unique_ptr<AnyProblem>()>;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Factory Dahlquist(const DahlquistProblem::Parameters& parameters) {
  return [parameters] { return std::make_unique<DahlquistProblem>(parameters); };
}
Factory Heat(const HeatProblem::Parameters& parameters) {
  return [parameters] { return std::make_unique<HeatProblem>(parameters); };
}
Factory Lorenz(const LorenzProblem::Parameters& parameters) {
  return [parameters] { return std::make_unique<LorenzProblem>(parameters); };
}

// The random guess of XBraid's example 2: for each C-point from the left (every second point here), nx numbers of the
// example generator in the C standard, with 64 bits of state.
class HeatWithBraidRand : public HeatProblem {
 public:
  explicit HeatWithBraidRand(const Parameters& parameters) : HeatProblem(parameters) {}
  void Initialize(std::int64_t point, double t, Vector& u) override {
    if (point == 0) return HeatProblem::Initialize(point, t, u);
    const std::int64_t drawn_before = (point / 2 - 1) * static_cast<std::int64_t>(u.size());
    std::uint64_t state = 1;
    const auto draw = [&state] {
      state = state * 1103515245u + 12345u;
      return static_cast<double>(static_cast<std::uint32_t>(state / 65536) % 32768) / 32768.0;
    };
    for (std::int64_t i = 0; i < drawn_before; ++i) draw();
    for (double& value : u) value = draw();
  }
};

void AddDahlquist(std::vector<ReferenceHistory>& all) {
  all.push_back(
      {"D01",
       Dahlquist({.lambda = -1, .u0 = 1, .initial_guess = 0.456}),
       {0, 5, 64},
       {.max_levels = 2, .cfactors = {2}, .cf_sweeps = {0}},
       {5.3780687886045342e-01, 8.9552115714507090e-03, 2.0703936767634950e-04, 4.2768858165567140e-06,
        7.3653129601123026e-08, 9.9967796965585529e-10, 1.0421115635907656e-11, 1.4687198233063848e-13}});
  all.push_back(
      {"D02",
       Dahlquist({.lambda = -1, .u0 = 1, .initial_guess = 0.456}),
       {0, 5, 64},
       {.max_levels = 2, .cfactors = {2}, .cf_sweeps = {1}},
       {4.5943166174401284e-01, 6.2584884181879257e-03, 1.1282056906923581e-04, 1.6473072154389398e-06,
        1.6899730583589633e-08, 1.2877319661009305e-10, 2.1480169696646679e-12, 3.0781593697229542e-14}});
  all.push_back(
      {"D03",
       Dahlquist({.lambda = -1, .u0 = 1, .initial_guess = 0.456}),
       {0, 5, 64},
       {.max_levels = 2, .cfactors = {4}, .cf_sweeps = {1}, .skip_downcycle = true},
       {kNone, 2.4849642391069501e-02, 1.1852414413472531e-03, 6.1727282796691840e-05, 2.5202812701434534e-06,
        6.5040469232968709e-08, 8.8485275815314836e-10, 4.7989599824519017e-12, 4.5102810375396984e-15}});
  all.push_back(
      {"D04",
       Dahlquist({.lambda = -1, .u0 = 1, .initial_guess = 0}),
       {0, 20, 256},
       {.max_levels = 3, .cfactors = {4}, .cf_sweeps = {1}},
       {5.4783158281429856e-01, 1.7113538691769632e-02, 1.2070874914938184e-03, 1.0677555459981183e-04,
        9.8896037730828519e-06, 9.3000379886819204e-07, 8.6164303355351474e-08, 7.5286844249676240e-09,
        5.9443977190045136e-10, 4.1300692344820463e-11, 2.4969925761892435e-12, 1.3105893556915859e-13}});
  all.push_back(
      {"D05",
       Dahlquist({.lambda = -1, .u0 = 1, .initial_guess = 0}),
       {0, 20, 256},
       {.max_levels = 3, .cfactors = {4}, .cf_sweeps = {1}, .skip_downcycle = true},
       {kNone, 9.9889398886345709e-02, 4.9883214790827531e-03, 4.3920968773159430e-04, 4.0000050319605474e-05,
        3.7547470008713852e-06, 3.5087751074979483e-07, 3.1399437325493181e-08, 2.5709180458805391e-09,
        1.8643829236437345e-10, 1.1788293230608750e-11, 6.4686837673955903e-13}});
  all.push_back({"D06",
                 Dahlquist({.lambda = -0.7, .u0 = 1.5, .initial_guess = 0.3}),
                 {0, 10, 103},
                 {.max_levels = 3, .cfactors = {4}, .cf_sweeps = {1}},
                 {7.0392992589473113e-01, 2.0790773121412812e-02, 7.7207470091973564e-04,
                  4.3539987045503915e-05, 2.5528967402373867e-06, 9.5428498671719487e-08,
                  2.3492216406329736e-09, 4.1213985442923894e-11, 5.1952426112791530e-13}});
  all.push_back(
      {"D07",
       Dahlquist({.lambda = -1, .u0 = 1, .initial_guess = 0.456}),
       {0, 20, 1024},
       {.max_levels = 5, .cfactors = {2}, .cf_sweeps = {1}, .fmg = true},
       {6.1510955411125845e-01, 2.9306192994741644e-03, 2.2352889230327155e-05, 1.7163897214266425e-07,
        1.3178381518470179e-09, 1.0105730819644004e-11, 7.7352165587228450e-14}});
  all.push_back(
      {"D08",
       Dahlquist({.lambda = -1, .u0 = 1, .initial_guess = 0.456}),
       {0, 20, 1024},
       {.max_levels = 4, .cfactors = {4}, .cf_sweeps = {1}, .fmg = true, .skip_downcycle = true},
       {kNone, 5.1255548443204365e-03, 8.0882190529709932e-05, 1.6034238009724928e-06, 3.3245819020562046e-08,
        7.0278411185911379e-10, 1.5027912522677369e-11, 3.2381611277115626e-13}});
  all.push_back({"D09",
                 Dahlquist({.lambda = -1, .u0 = 1, .initial_guess = 0.456}),
                 {0, 20, 256},
                 {.max_levels = 3, .cfactors = {8}, .cf_sweeps = {2}},
                 {3.3437856406307376e-01, 1.5683439369262978e-02, 7.2791681722198724e-04,
                  3.2584580709090039e-05, 1.3597058277695018e-06, 4.9283166460996721e-08,
                  1.3489077161558531e-09, 2.1651938282450628e-11, 1.2251772627830590e-13}});
  all.push_back(
      {"D10",
       Dahlquist({.lambda = -1, .u0 = 1, .initial_guess = 0.456}),
       {0, 20, 512},
       {.max_levels = 2, .cfactors = {16}, .cf_sweeps = {0}, .skip_downcycle = true},
       {kNone, 9.3521940005588833e-02, 1.3028977237797845e-02, 2.1465063701880047e-03, 3.7467852778973252e-04,
        6.7110172473985695e-05, 1.2195969940683373e-05, 2.2367324807633209e-06, 4.1238787017936193e-07,
        7.6023330013942160e-08, 1.3873355086707309e-08, 2.4666533574176166e-09, 4.1908878413243122e-10,
        6.6778636045505030e-11, 9.8278834977094879e-12, 1.3208616502098190e-12, 1.6080569996197518e-13}});
  all.push_back(
      {"D11",
       Dahlquist({.lambda = -2, .u0 = 1, .initial_guess = 0}),
       {0, 8, 200},
       {.max_levels = 4, .cfactors = {3}, .cf_sweeps = {1}},
       {6.3016962688310452e-01, 2.0277289229313506e-02, 1.4726593689389129e-03, 1.3314659851071210e-04,
        1.2544948543774756e-05, 1.1501750749536414e-06, 9.6345124268807527e-08, 7.0218830571152264e-09,
        4.3236708531223025e-10, 2.2169296301072404e-11, 9.4249688892861129e-13}});
  all.push_back(
      {"D12",
       Dahlquist({.lambda = -1, .u0 = 1, .initial_guess = 0}),
       {0, 12, 128},
       {.max_levels = 3, .cfactors = {4}, .cf_sweeps = {0, 1}, .skip_downcycle = true},
       {kNone, 1.4914623643325514e-01, 1.3008277808040784e-02, 1.5569025247313380e-03, 2.0064910428743365e-04,
        2.3926584039987214e-05, 2.5278521519589473e-06, 2.3403633423446233e-07, 1.9150535896687949e-08,
        1.3963272783543558e-09, 9.1435648962867964e-11, 5.4123442862363140e-12, 2.9083187390900669e-13}});
  all.push_back(
      {"D13",
       Dahlquist({.lambda = -1, .u0 = 1, .initial_guess = 0.2}),
       {0, 10, 300},
       {.max_levels = 3, .cfactors = {5, 2}, .cf_sweeps = {1}, .c_weights = {0.8}},
       {4.9660150395811131e-01, 1.8517708287884332e-02, 1.2746801152539525e-03, 8.6618795494639375e-05,
        5.3004932862708023e-06, 2.9216923082722393e-07, 1.8455304730162987e-08, 1.4423947084159726e-09,
        9.9642390480850379e-11, 5.4376068512992674e-12, 2.3460200761439365e-13}});
  all.push_back({"D14",
                 Dahlquist({.lambda = -1, .u0 = 1, .initial_guess = 0.456}),
                 {0, 20, 256},
                 {.max_levels = 4, .cfactors = {2}, .cf_sweeps = {1}, .fmg = true, .fmg_v_cycles = 2},
                 {7.0663202665951808e-01, 1.6800411271353816e-02, 4.6184086448415530e-04,
                  1.2722445475785300e-05, 3.4898732900615338e-07, 9.5103631461241886e-09,
                  2.5688706767163129e-10, 6.8585511021739461e-12, 1.8035140136961592e-13}});
  // max_levels 30 in the original
  all.push_back({"D16",
                 Dahlquist({.lambda = 0.2, .u0 = 1, .initial_guess = 0.456}),
                 {0, 5, 256},
                 {.max_levels = 8, .cfactors = {2}, .cf_sweeps = {1}, .skip_downcycle = true},
                 {kNone, 2.8309655987548998e-01, 3.6237495849042504e-03, 1.2434345085722579e-05,
                  2.3520941379312912e-08, 2.7523930096927760e-11, 2.1893643085035374e-14}});
}

// The grid of XBraid's ex-01-expanded -tg 2: the first half of the steps have size 1/4, the others 3/4.
TimeGrid HalfQuarters(std::int64_t steps) {
  std::vector<double> points = {0.0};
  for (std::int64_t i = 0; i < steps; ++i) points.push_back(points.back() + (i < steps / 2 ? 0.25 : 0.75));
  return *TimeGrid::FromPoints(points);
}

void AddDahlquistOnHalfQuarters(std::vector<ReferenceHistory>& all) {
  const Factory dahlquist = Dahlquist({.lambda = -1, .u0 = 1, .initial_guess = 0.456});
  const Options options = {.max_levels = 3, .cfactors = {4}};
  all.push_back(
      {"NonUniformTwoNorm",
       dahlquist,
       HalfQuarters(64),
       options,
       {2.9555596780644688e-01, 1.3883096140138740e-02, 4.5341749335292200e-04, 8.9953111988811492e-06,
        1.7071169002731579e-07, 2.9380934369741123e-09, 3.0586330589272795e-11}});
  all.push_back(
      {"NonUniformOneNorm",
       dahlquist,
       HalfQuarters(64),
       options,
       {1.0134020775205181e+00, 3.7684298218812778e-02, 1.1002130250470201e-03, 2.1989773106510084e-05,
        4.0236374296381341e-07, 5.7500323779786544e-09, 4.1569962657375266e-11}});
  all.back().options.time_norm = TimeNorm::kOne;
  all.push_back(
      {"NonUniformMaxNorm",
       dahlquist,
       HalfQuarters(64),
       options,
       {1.1027349504000000e-01, 7.6999631443066784e-03, 3.2192657469828803e-04, 6.3757898366062604e-06,
        1.0539952046494258e-07, 1.7466085615091292e-09, 2.8985259102643542e-11}});
  all.back().options.time_norm = TimeNorm::kMax;
  all.push_back(
      {"NonUniformAndFactorDoesNotDivide",
       dahlquist,
       HalfQuarters(103),
       options,
       {3.8743285551272888e-01, 2.2185372951871840e-02, 1.2053610691769091e-03, 5.2682720489931112e-05,
        1.5318954435670055e-06, 3.1713584542369187e-08, 6.2870833267300230e-10, 1.2460112427438176e-11}});
}

// XBraid's ex-01-expanded-bdf2 -ntime 128.
void AddDahlquistByBdf2(std::vector<ReferenceHistory>& all) {
  all.push_back({"Bdf2",
                 [] {
                   return std::make_unique<examples::DahlquistBdf2Problem>(
                       examples::DahlquistBdf2Problem::Parameters{.initial_guess = 0.456});
                 },
                 {0, 64, 64},
                 {.max_levels = 3, .cfactors = {4}},
                 {7.0523707464394597e-02, 3.3537665988905575e-04, 1.6336462458546605e-06,
                  7.8811824288458309e-09, 3.7549501284762314e-11, 1.7601879549720342e-13}});
}

void AddHeat(std::vector<ReferenceHistory>& all) {
  all.push_back({"H01",
                 Heat({.nx = 33, .spatial_coarsening = false, .initial_guess = 0}),
                 {0, 2 * std::numbers::pi, 64},
                 {.max_levels = 2, .cfactors = {2}, .cf_sweeps = {1}},
                 {4.4815219683171756e+00, 6.6166902503016919e-02, 1.3853482264808159e-03,
                  2.9766290750047488e-05, 4.7693219236606078e-07, 9.6450472558729417e-09,
                  2.3157701523948572e-10, 3.8754700224106325e-12, 4.4311968887806039e-14}});
  all.push_back(
      {"H02",
       Heat({.nx = 33, .spatial_coarsening = false, .initial_guess = 0}),
       {0, 2 * std::numbers::pi, 64},
       {.max_levels = 3, .cfactors = {4}, .cf_sweeps = {1}, .skip_downcycle = true},
       {kNone, 1.1020247033235966e+00, 3.7658044053656532e-02, 1.1014237467009394e-03, 4.0361545709303729e-05,
        1.5899081297299520e-06, 2.4099388151769184e-08, 1.4205471800210576e-10, 1.8647925487279866e-13}});
  all.push_back({"H04",
                 Heat({.nx = 33, .spatial_coarsening = true, .initial_guess = 0}),
                 {0, 2 * std::numbers::pi, 256},
                 {.max_levels = 3, .cfactors = {4}, .cf_sweeps = {1}},
                 {4.4732579228690872e+00, 1.9452610166950016e-01, 7.1938633502017122e-03,
                  2.0930726144878070e-04, 8.4633805139913624e-06, 1.4237313959585743e-07,
                  1.0488278100164749e-09, 5.5031056313830037e-12, 7.2433993064212591e-14}});
  all.push_back({"H05",
                 Heat({.nx = 65, .spatial_coarsening = true, .initial_guess = 0.5}),
                 {0, 2 * std::numbers::pi, 256},
                 {.max_levels = 4, .cfactors = {2}, .cf_sweeps = {1}, .fmg = true, .skip_downcycle = true},
                 {kNone, 2.6292759692013404e-02, 1.6205561743241968e-04, 1.2103448806819924e-06,
                  8.5611748962958480e-09, 5.0054776763790914e-11, 3.2980651290860076e-13}});
  all.push_back(
      {"H06",
       Heat({.nx = 17, .spatial_coarsening = false, .initial_guess = 0.5}),
       {0, 2 * std::numbers::pi, 100},
       {.max_levels = 3, .cfactors = {3}, .cf_sweeps = {0}},
       {6.2989041074293608e+00, 8.9080022100492873e-01, 1.8947820970362761e-01, 4.4312052404810259e-02,
        1.1010407147831894e-02, 2.7675926993771709e-03, 6.9087045490583447e-04, 1.6992489526320190e-04,
        4.0857248251202688e-05, 9.5143335046052466e-06, 2.1221500958326394e-06, 4.4805151927140105e-07,
        8.8547952199577894e-08, 1.6226465556310519e-08, 2.7372469331798378e-09, 4.2285700652048026e-10,
        5.9608723894518434e-11, 7.6482169718932338e-12, 8.9102029237176467e-13}});
  all.push_back(
      {"H03",
       [] {
         return std::make_unique<HeatWithBraidRand>(
             HeatProblem::Parameters{.nx = 33, .spatial_coarsening = false});
       },
       {0, 2 * std::numbers::pi, 64},
       {.max_levels = 2, .cfactors = {2}, .cf_sweeps = {1}},
       {4.4703201722099308e+00, 1.0922111253406634e-01, 3.0913845976707631e-03, 8.1130902922332026e-05,
        2.1361442176250658e-06, 7.5004341066043603e-08, 3.2048165411287343e-09, 1.4745933169923726e-10,
        6.6980903187916213e-12, 2.4731793322915494e-13}});
}

void AddLorenz(std::vector<ReferenceHistory>& all) {
  all.push_back(
      {"L01",
       Lorenz({.initial_guess = 1}),
       {0, 2, 128},
       {.max_levels = 2, .cfactors = {4}, .cf_sweeps = {1}},
       {1.9294218455856754e+01, 6.3343469688585297e-01, 8.1222300228995375e-03, 3.4835028507652362e-05,
        2.4738643973937849e-07, 1.0305648264245999e-09, 3.8533078994154958e-12, 1.4755528111219851e-14}});
  all.push_back({"L02",
                 Lorenz({.initial_guess = 1}),
                 {0, 2, 256},
                 {.max_levels = 3, .cfactors = {2}, .cf_sweeps = {1}, .skip_downcycle = true},
                 {kNone, 3.6308374804025031e-02, 3.8174757057187871e-05, 2.8159796535232043e-08,
                  1.1739429668588317e-11, 4.1869541107815327e-14}});
  all.push_back({"L03",
                 Lorenz({.initial_guess = 1}),
                 {0, 2, 256},
                 {.max_levels = 3, .cfactors = {4}, .cf_sweeps = {1}, .fmg = true, .skip_downcycle = true},
                 {kNone, 1.2333444268338440e+00, 2.9539833528391848e-03, 3.4843004910868340e-06,
                  9.2562375396595820e-10, 3.0604296012423244e-13}});
  all.push_back(
      {"L04",
       Lorenz({.initial_guess = 1}),
       {0, 2, 512},
       {.max_levels = 3, .cfactors = {2}, .cf_sweeps = {1}, .fmg = true},
       {3.2911469135626126e+00, 7.5005783916932227e-05, 7.6504497621329457e-10, 5.6841060672167311e-14}});
  all.push_back(
      {"L05",
       Lorenz({.method = LorenzProblem::Method::kForwardEuler, .initial_guess = 1}),
       {0, 2, 1024},
       {.max_levels = 2, .cfactors = {2}, .cf_sweeps = {1}, .skip_downcycle = true},
       {kNone, 2.1746542572881353e-01, 2.5560636359559893e-02, 2.0169932415043399e-03, 1.3377220027980410e-04,
        6.6410143767267603e-06, 2.5707830695886609e-07, 8.1392873673642125e-09, 2.1976924716643201e-10,
        5.2727735203892847e-12, 1.3852549473088802e-13}});
}

}  // namespace

void PrintTo(const ReferenceHistory& history, std::ostream* stream) { *stream << history.name; }

std::vector<ReferenceHistory> XBraidHistories() {
  std::vector<ReferenceHistory> all;
  AddDahlquist(all);
  AddDahlquistOnHalfQuarters(all);
  AddDahlquistByBdf2(all);
  AddHeat(all);
  AddLorenz(all);
  return all;
}

std::vector<ReferenceHistory> PyMgritHistories() {
  const Factory dahlquist = Dahlquist({.lambda = -1, .u0 = 1, .initial_guess = 0});
  std::vector<ReferenceHistory> all;
  all.push_back({"TwoLevelF",
                 dahlquist,
                 {0, 5, 64},
                 {.max_levels = 2, .cfactors = {2}, .cf_sweeps = {0}},
                 {7.782466485879e-03, 1.847853277838e-04, 5.212186972218e-06, 1.432235611581e-07,
                  3.541161506468e-09, 7.597042011684e-11, 1.398476881114e-12}});
  all.push_back({"TwoLevelFcf",
                 dahlquist,
                 {0, 5, 64},
                 {.max_levels = 2, .cfactors = {2}, .cf_sweeps = {1}},
                 {6.695299472785e-03, 1.364885784898e-04, 3.240373988948e-06, 7.061115844540e-08,
                  1.260608805226e-09, 1.742975645707e-11, 1.816522525283e-13}});
  all.push_back({"ThreeLevels",
                 dahlquist,
                 {0, 20, 256},
                 {.max_levels = 3, .cfactors = {4}, .cf_sweeps = {1}},
                 {2.312151505377e-02, 1.630854689414e-03, 1.442626313481e-04, 1.336629405101e-05,
                  1.261070905156e-06, 1.184216302435e-07, 1.065569750119e-08, 8.770503926384e-10}});
  all.push_back({"NestedFCycles",
                 dahlquist,
                 {0, 20, 1024},
                 {.max_levels = 4, .cfactors = {4}, .cf_sweeps = {1}, .fmg = true, .skip_downcycle = true},
                 {kNone, 8.738866480918e-05, 1.732409974879e-06, 3.592031080948e-08, 7.593235500949e-10,
                  1.623696016447e-11, 3.498648410068e-13}});
  all.push_back({"TwoLevelNested",
                 dahlquist,
                 {0, 5, 64},
                 {.max_levels = 2, .cfactors = {4}, .cf_sweeps = {1}, .skip_downcycle = true},
                 {kNone, 1.607701838052e-03, 8.627005901195e-05, 3.817819597509e-06, 1.134892521013e-07,
                  1.934440188224e-09, 1.548046284428e-11, 3.762309882876e-14}});
  all.push_back({"FactorDoesNotDivide",
                 dahlquist,
                 {0, 10, 103},
                 {.max_levels = 3, .cfactors = {4}, .cf_sweeps = {1}},
                 {2.275447888452e-02, 1.531818236507e-03, 1.211015530726e-04, 8.464823162585e-06,
                  4.686249772849e-07, 1.974883576993e-08, 6.372110806728e-10, 1.542110865428e-11}});
  all.push_back({"TwoCfSweeps",
                 dahlquist,
                 {0, 20, 256},
                 {.max_levels = 3, .cfactors = {8}, .cf_sweeps = {2}},
                 {1.409077082819e-02, 5.398906392581e-04, 2.446253933590e-05, 1.174281187822e-06,
                  5.768458145794e-08, 2.770303067394e-09, 1.107280372713e-10, 2.706667865415e-12}});
  for (ReferenceHistory& history : all) history.options.residual_time = ResidualTime::kCycle;
  return all;
}

}  // namespace plait::mgrit::testing
