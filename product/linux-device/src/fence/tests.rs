use super::*;

#[test]
fn a_host_that_has_the_fence_executes_it() {
    let Some(fence) = of_all_threads() else { return };
    fence();
    fence();
}
