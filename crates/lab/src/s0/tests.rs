use super::mapped_writes::CPUS;
use super::*;

#[test]
fn reads_are_the_integers_of_the_code_on_each_path() {
    for variant in VARIANTS {
        let mut seen = Vec::new();
        for size_mib in [20, 90] {
            let ran = run_many(Variant::named(variant), size_mib, 1, Rig::SMALL).unwrap().remove(0);
            for path in ran.paths.keys().filter(|path| findings::is_shown(path)) {
                assert_eq!(findings::expected(variant, path), Some(path.1), "{variant} {path:?}");
                seen.push(path.0.clone());
            }
            let sums = ran.paths.iter().fold(([0; 3], 0), |(mut sums, calls), ((_, reads), count)| {
                sums.iter_mut().zip(reads).for_each(|(sum, read)| *sum += read * count);
                (sums, calls + count)
            });
            assert_eq!(sums, (ran.reads, ran.calls), "{variant}: the engine counted the same");
        }
        assert!(["C", "WC"].iter().all(|path| seen.iter().any(|seen| seen == path)), "{variant}: {seen:?}");
    }
}

#[test]
fn below_the_limit_all_forms_are_the_same() {
    let base = run_many(Variant::named("linux-2.6.31"), 20, 1, Rig::SMALL).unwrap().remove(0);
    for variant in VARIANTS {
        let ran = run_many(Variant::named(variant), 20, 1, Rig::SMALL).unwrap().remove(0);
        // What others have left of a CPU's allowance may bring a call more, one on each CPU.
        let spread = ran.calls.abs_diff(base.calls);
        assert!(ran.pauses == 0 && spread <= CPUS as u64, "{variant}: {} calls", ran.calls);
        assert!((ran.mib_per_s / base.mib_per_s - 1.0).abs() < 0.01, "{variant}: {}", ran.mib_per_s);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let [first, second] = [0; 2].map(|_| run_many(Variant::named("s0-september"), 70, 1, Rig::SMALL).unwrap().remove(0));
    assert_eq!((first.trace_hash, first.reads), (second.trace_hash, second.reads));
}

#[test]
fn options_that_cannot_be_used_are_said() {
    for (name, value, says) in
        [("variant", "s0-june", "s0-july"), ("size-mib", "0", "1 to 2000"), ("runs", "2", "3 to 100")]
    {
        let given = vec![(name.to_owned(), value.to_owned())];
        let error = Plan::read(&Request { given, ..Request::default() }).err().unwrap().to_string();
        assert!(error.contains(says) && error.contains(value), "{error}");
    }
}
