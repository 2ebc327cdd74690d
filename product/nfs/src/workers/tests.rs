use afflux_linux_device::LinuxPlatform;

use super::*;
use crate::limits::CALL_BYTES;

fn bytes_of<F>(_: impl FnOnce(Arc<Volume<LinuxPlatform>>, Arc<Desk<LinuxPlatform>>) -> F) -> usize {
    size_of::<F>()
}

#[test]
fn a_worker_is_no_larger_than_what_its_call_is_charged_with() {
    let bytes = bytes_of(work::<LinuxPlatform>)
        + size_of::<Worker<LinuxPlatform>>()
        + size_of::<Desk<LinuxPlatform>>()
        + size_of::<Bell>();
    assert!(bytes as u64 <= CALL_BYTES, "{bytes} bytes");
}
