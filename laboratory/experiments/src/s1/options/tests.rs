use super::*;

fn read(given: &[(&str, &str)]) -> Result<SharedOptions, LabError> {
    let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    SharedOptions::read(&Request { given, ..Request::default() })
}

#[test]
fn all_cases_unless_some_are_named() {
    assert_eq!(read(&[]).unwrap().cases.len(), 6);
    let common = read(&[("case", "twelve-disks"), ("request", "24KiB"), ("allocate-at-submission", "yes")]).unwrap();
    assert_eq!((common.cases, common.request_kib, common.at_submission), (vec![Case::TwelveDisks], Some(24), true));
    assert_eq!(common.batch, 32);
}

#[test]
fn what_cannot_be_used_is_said() {
    for (name, value, says) in [
        ("case", "three-writers", "two-writers"),
        ("request", "5000", "multiple of 4 KiB"),
        ("request", "2MiB", "4 KiB to 1 MiB"),
        ("size", "much", "not a size"),
        ("disk-rate", "1", "1 MB/s"),
        ("disk-cache", "2GiB", "to 1 GiB"),
        ("memory", "1MiB", "512 MiB to 64 GiB"),
        ("request-batch", "0", "1 to 1024"),
        ("allocate-at-submission", "maybe", "yes and no"),
        ("seed", "-1", "number from 0"),
    ] {
        let error = read(&[(name, value)]).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains(value) && error.contains(name), "{error}");
    }
}
