// The revision of the source that this program was built from.
#ifndef PLAIT_TOOLS_REVISION_REVISION_H_
#define PLAIT_TOOLS_REVISION_REVISION_H_

namespace plait {

// The commit that was checked out, 40 hexadecimal digits; "unknown" for a source tree without git.
const char* Revision();

}  // namespace plait

#endif  // PLAIT_TOOLS_REVISION_REVISION_H_
