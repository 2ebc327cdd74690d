use std::cell::Cell;

use super::{SpinGuard, SpinLock};

/// Implemented once for every type, and a second time for types that threads may share. For such a
/// type, `ask` without the parameter is ambiguous and does not compile.
trait NotShared<Which> {
    fn ask() -> bool {
        true
    }
}

struct Shared;

impl<T> NotShared<()> for T {}
impl<T: Sync> NotShared<Shared> for T {}

fn share<T: Sync>(value: &T) -> &T {
    value
}

#[test]
fn threads_share_a_guard_only_where_they_may_share_the_value() {
    assert!(<SpinGuard<'_, Cell<u8>> as NotShared<_>>::ask());
    let lock = SpinLock::new(7);
    assert_eq!(**share(&lock.lock()), 7);
}
