//! The bounds of a mount.
//!
//! Owns: the sizes that INIT announces, the bounds on nodes, open files and calls.
//! Does not own: limits of files and names (the volume).
//! Invariants: a message of the largest size holds a header and the largest WRITE.

/// Most bytes of data in a READ, a WRITE or a listing.
pub const DATA_BYTES_MAX: usize = 1 << 20;
/// Most bytes of a message: a WRITE's data and a page for its headers.
pub const MESSAGE_BYTES_MAX: usize = DATA_BYTES_MAX + PAGE_BYTES;
/// Most nodes that the kernel may hold: some 130 bytes each, and 90 for a later server. The kernel itself takes about
/// 1 KiB for each. Above the limit, names that are new to the kernel are refused.
pub const NODES_MAX: usize = 1 << 24;
/// Above so many nodes the mount asks the kernel to forget unused ones, if the kernel takes such notices.
pub(crate) const NODES_USUAL: usize = 1 << 20;
/// Most files and directories that may be open at a time.
pub const OPEN_FILES_MAX: usize = 1 << 16;
/// Most calls of a message stream that wait at a time.
pub const CALLS_MAX: usize = 1024;

/// Least memory that messages of waiting calls may take. In a larger cache they may take as much as it has.
pub(crate) const WAITING_BYTES_MIN: usize = 256 << 20;
/// Messages of waiting calls up to this length are not counted: they are as small as the rest of a call.
pub(crate) const SHORT_BYTES_MAX: usize = 8 << 10;
pub(crate) const PAGE_BYTES: usize = 4096;
/// Most background requests (readahead, mapped pages) that the kernel may have sent and not got answered.
pub(crate) const BACKGROUND_MAX: u16 = 64;
/// Time that an interrupted call may still take if its program is being killed. A working disk answers within this
/// time.
pub(crate) const INTERRUPT_GRACE_NS: u64 = 1_000_000_000;
/// The same for a program that goes on after its signal. Few programs expect EINTR of a file.
pub(crate) const INTERRUPT_PATIENCE_NS: u64 = 10 * INTERRUPT_GRACE_NS;
/// How long a change of a file's end waits until the kernel has dropped the file's last page. The kernel may wait for
/// the page's bytes meanwhile. A page that is dropped later may show what a mapping has stored past the end.
pub(crate) const DROP_PATIENCE_NS: u64 = 1_000_000_000;
/// Assumed length of a name, to guess how many entries fit a listing.
pub(crate) const NAME_BYTES_USUAL: usize = 16;
