// The machine's laws, sampled.
#include "test/unit/placement/Profiles.h"

namespace mcc::placement::test {

/// Returns a curve of ns + size * nsPerUnit.
static Curve line(double ns, double nsPerUnit) {
  std::vector<Curve::Sample> samples;
  for (double size = 1024; size < 1e9; size *= 16)
    samples.push_back({size, {ns + size * nsPerUnit}});
  return Curve::make(std::move(samples)).value();
}

static MatrixTimes matrices(Format format, double nsPerByte, double nsPerMac) {
  const std::array<GemmTable::Axis, 3> axes = {{{2, 16, 128}, {256, 4096}, {256, 4096}}};
  const double weight = static_cast<double>(formatBytes(format, 4096)) / 4096;
  std::vector<RawNs> cells;
  for (const double m : axes[0])
    for (const double n : axes[1])
      for (const double k : axes[2])
        cells.push_back({500 + n * k * weight * nsPerByte + m * n * k * nsPerMac});
  return {format, line(500, nsPerByte), GemmTable::make(axes, cells).value()};
}

static DeviceProfile device(double launchNs, double nsPerByte, double nsPerMac) {
  DeviceProfile profile;
  profile.launch = {launchNs, launchNs * 3, launchNs};
  profile.rows = line(100, nsPerByte);
  profile.attentionKeys = line(300, nsPerByte);
  profile.attentionMacs = line(300, nsPerMac * 2);
  profile.matrices = {matrices(Format::BF16, nsPerByte, nsPerMac), matrices(Format::Q4_0, nsPerByte, nsPerMac)};
  return profile;
}

Profile makeProfile() {
  Profile profile;
  profile.machine = {"Two Cores", 2, "", "Large GPU", "580.1", "pcie 5 x16"};
  profile.cpu = device(1000, 1 / 20.0, 1 / 50.0);
  profile.gpu = device(2000, 1 / 4000.0, 1 / 200000.0);
  profile.gpu->sync = {10000};
  const Link::Direction direction = {line(10000, 1 / 50.0), line(20000, 1 / 7.0)};
  profile.link = Link{direction, direction};
  return profile;
}

} // namespace mcc::placement::test
