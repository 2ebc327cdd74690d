use super::*;
use crate::experiment::tests::given;

fn read(pairs: &[(&str, &str)]) -> Result<SharedOptions, LabError> {
    SharedOptions::read(&given(pairs))
}

#[test]
fn all_cases_unless_some_are_named() {
    assert_eq!(read(&[]).unwrap().cases.len(), 6);
    let common = read(&[("case", "twelve-disks"), ("allocate-at-submission", "yes")]).unwrap();
    assert_eq!((common.cases, common.at_submission), (vec![Case::TwelveDisks], true));
    assert_eq!(common.batch, 32);
}

#[test]
fn what_cannot_be_used_is_said() {
    for (name, value, says) in [
        ("case", "three-writers", "two-writers"),
        ("size", "much", "not a size"),
        ("disk-rate", "1", "1 MB/s"),
        ("request-batch", "0", "1 to 1024"),
        ("allocate-at-submission", "maybe", "yes and no"),
        ("seed", "-1", "number from 0"),
    ] {
        let error = read(&[(name, value)]).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains(value) && error.contains(name), "{error}");
    }
}
