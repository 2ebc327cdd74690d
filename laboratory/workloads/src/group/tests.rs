use super::*;

#[test]
fn calls_of_a_flow_are_shared_by_weight() {
    let flow = Arc::new(Flow::default());
    let mut shares = [2, 8].map(|weight| FlowShare { flow: Arc::clone(&flow), weight, calls: 0 });
    shares.iter().for_each(FlowShare::begins);
    for _ in 0..5000 {
        shares.iter_mut().for_each(|share| {
            share.take();
        });
    }
    let [two, eight] = shares.map(|share| share.calls);
    assert!(eight.abs_diff(4 * two) <= 4, "{two} and {eight}");
}

#[test]
fn a_jobs_end_ends_whom_it_says() {
    let run = |ends| {
        let mut everybody = Everybody::default();
        let groups = [0, 0, 1, 1];
        for group in groups {
            everybody.add(group, EndsOthers { always: true, on_error: false });
        }
        [0, 1, 2].into_iter().for_each(|number| everybody.begins(number));
        everybody.ended(0, ends, false);
        [1, 2, 3].map(|number| everybody.is_end_requested(number))
    };
    assert_eq!(run(Ends::Group), [true, false, false]);
    assert_eq!(run(Ends::Running), [true, true, false]);
    assert_eq!(run(Ends::All), [true; 3]);
}

#[test]
fn without_exitall_nobody_ends_others() {
    let mut everybody = Everybody::default();
    everybody.add(0, EndsOthers { always: false, on_error: false });
    everybody.add(0, EndsOthers { always: false, on_error: false });
    everybody.ended(0, Ends::All, true);
    assert!(!everybody.is_end_requested(1));
}

#[test]
fn with_exitall_on_error_only_an_error_ends_others() {
    for has_failed in [false, true] {
        let mut everybody = Everybody::default();
        (0..2).for_each(|_| _ = everybody.add(0, EndsOthers { always: false, on_error: true }));
        everybody.ended(0, Ends::All, has_failed);
        assert_eq!(everybody.is_end_requested(1), has_failed);
    }
}
