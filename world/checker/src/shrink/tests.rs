use super::*;
use crate::text::FailRequest;
use crate::{generate, run};

/// A scenario that always fails, so that none of its faults is the cause.
#[test]
fn faults_that_are_not_to_blame_are_dropped() {
    let fail_requests = (1..4).map(|nth| FailRequest { device: 0, nth, what: nth }).collect();
    let rare = vec![("sunshine".to_owned(), 5)];
    let scenario = Scenario { fail_requests, fail_allocation: 7, crash_step: 50, rare, ..generate(1) };
    let failure = run(&scenario).unwrap_err();
    let shrunk = shrink(&scenario, &failure).scenario;
    assert_eq!((shrunk.fail_requests.len(), shrunk.fail_allocation, shrunk.crash_step), (0, 0, 0));
    assert_eq!((shrunk.tasks.len(), shrunk.crash_us), (0, 0));
    assert_eq!(shrunk.rare.len(), 1, "what it fails by stays");
}
