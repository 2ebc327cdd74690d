use super::super::*;

#[test]
fn a_host_that_has_the_fence_executes_it() {
    let Some(fence) = fence_of_all_threads() else { return };
    fence();
    fence();
}
