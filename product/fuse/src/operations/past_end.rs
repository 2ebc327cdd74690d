//! Bytes that a mapping has stored past a file's end.
//!
//! A program may store bytes in the rest of a file's last page through a shared mapping. These bytes are no part of the
//! file. The kernel cuts a page at the file's end when it writes the page back. Without a notice the kernel's page
//! stays while the file grows, and these bytes get into the file.
//!
//! Owns: the moment at which the kernel drops such a page.
//! Does not own: the notice (`notices`), which files may be mapped (`open_files`), the size (the volume).
//! Invariants: the page is written back and dropped before the file grows past it, and no lock is held meanwhile. The
//! kernel's own WRITE of pages does not come here: the kernel may send it in order to take a notice. SETATTR is left
//! out: the kernel sends no WRITE of the file until SETATTR has its answer, so it cannot drop a changed page.

use std::pin::pin;

use afflux_volume::{Inode, Platform};
use futures_util::future::select;

use crate::limits::{DROP_PATIENCE_NS, PAGE_BYTES};
use crate::mount::Mount;

/// Has the kernel drop the file's last page if a change makes bytes after the end part of the file, up to `until`. The
/// change itself writes those from there on.
pub(super) async fn drop_before<P: Platform>(on: &Mount<P>, (node, inode): (u64, &Inode<P>), until: u64) {
    let end = inode.size();
    let in_page = end % PAGE_BYTES as u64;
    if until <= end || in_page == 0 || !on.may_be_stored(node) {
        return;
    }
    let Some(notice) = on.notices.note_page(inode.device().0, node, end - in_page) else { return };
    let platform = on.volume.engine().platform();
    let patience = platform.sleep_until(platform.now().after(DROP_PATIENCE_NS));
    // A box: few calls come here, and all have room for the largest future.
    Box::pin(async move {
        select(pin!(notice.ended()), pin!(patience)).await;
    })
    .await;
}
