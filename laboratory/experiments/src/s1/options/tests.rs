use super::*;
use crate::experiment::LabError;
use crate::experiment::tests::asked;
use crate::s1::S1;

fn read(pairs: &[(&str, &str)]) -> Result<SharedOptions, LabError> {
    SharedOptions::read(&asked(&S1, pairs)?)
}

#[test]
fn all_cases_unless_some_are_named() {
    assert_eq!(read(&[]).unwrap().cases.len(), 6);
    let common = read(&[("case", "twelve-disks"), ("allocate-at-submission", "yes")]).unwrap();
    assert_eq!((common.cases, common.at_submission), (vec![Case::TwelveDisks], true));
    assert_eq!(common.batch, 32);
}

#[test]
fn an_option_stands_for_all_values_of_a_case() {
    let case = [(2048, 64, 8192), (128, 64, 8192), (128, 24, 0)];
    let of = |pairs: &[(&str, &str)]| {
        let queues = read(pairs).unwrap().queues(&case);
        queues.iter().map(|it| (it.queue.nr_requests, it.queue.request_kib, it.cache_kib)).collect::<Vec<_>>()
    };
    assert_eq!(of(&[]), case);
    assert_eq!(of(&[("requests", "512")]), [(512, 64, 8192), (512, 64, 8192), (512, 24, 0)]);
    assert_eq!(of(&[("requests", "512"), ("request-size", "96KiB"), ("disk-cache", "0")]), [(512, 96, 0); 3]);
    assert_eq!([&[][..], &[("memory", "2GiB")]].map(|it| read(it).unwrap().memory_bytes(1)), [1, 2 << 30]);
}

#[test]
fn what_cannot_be_used_is_said() {
    for (name, value, says) in [
        ("case", "three-writers", "two-writers"),
        ("size", "much", "not a size"),
        ("disk-rate", "1", "1 MB/s"),
        ("request-batch", "0", "1 to 1024"),
        ("requests", "0", "4 to 65536"),
        ("request-size", "1", "4 KiB to 4 MiB"),
        ("disk-cache", "2GiB", "1 GiB"),
        ("memory", "1MB", "256 MiB to 64 GiB"),
        ("seed", "-1", "number from 0"),
    ] {
        let error = read(&[(name, value)]).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains(value) && error.contains(name), "{error}");
    }
}
