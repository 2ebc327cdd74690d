use super::object;
use crate::simulate::tests::run;

#[test]
fn names_and_units_are_fios() {
    let object = object(&run());
    let backup = &object["jobs"][0];
    assert_eq!(backup["jobname"], "backup");
    assert_eq!(backup["write"]["io_bytes"], 1_000_000_000);
    assert_eq!(backup["write"]["total_ios"], 15_259);
    assert_eq!(backup["write"]["runtime"], 40_000, "milliseconds");
    assert_eq!(backup["write"]["bw_bytes"], 25_000_000);
    assert_eq!(backup["write"]["bw"], 24_414, "KiB a second");
    assert_eq!(backup["write"]["clat_ns"]["percentile"]["99.900000"], 820_000);
    assert_eq!(backup["sync"]["total_ios"], 12);
    assert_eq!(object["jobs"][1]["error"], 1);
}
