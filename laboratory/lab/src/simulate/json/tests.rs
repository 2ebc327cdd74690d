use serde_json::Value;

use super::super::tests::run;
use super::object;

#[test]
fn the_object_has_the_agreed_shape() {
    let text = object(&run()).to_string();
    assert!(!text.contains('\n'));
    let object: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(object["source"], "simulated");
    assert_eq!(object["seed"], 7);
    assert_eq!(object["trace_hash"], "00abcdef01234567");
    assert_eq!(object["virtual_s"], 44.0);
    assert_eq!(object["real_s"], 0.12);
    let write = &object["jobs"][0]["write"];
    assert_eq!(object["jobs"][0]["name"], "backup");
    assert_eq!((&write["bytes"], &write["ops"]), (&1_000_000_000.into(), &15_259.into()));
    assert_eq!(write["mb_per_s"], 25.0);
    let latency = &write["latency_us"];
    assert_eq!((&latency["p50"], &latency["p99_9"], &latency["max"]), (&41.0.into(), &820.0.into(), &4920.0.into()));
    // Calls that did not happen are present, as zero.
    assert_eq!(object["jobs"][0]["read"]["ops"], 0);
    assert_eq!(object["jobs"][0]["read"]["mb_per_s"], 0.0);
    assert_eq!(object["jobs"][0]["sync"]["ops"], 12);
    assert_eq!(object["jobs"][1]["errors"][0]["count"], 1);
    let engine = &object["engine"];
    assert_eq!(engine["counters"]["nr_dirtied"], 244_140);
    assert_eq!(engine["pauses"][0]["s"], 46.0);
    assert_eq!(engine["at_risk_bytes_max"], 104_857_600);
    assert_eq!(engine["devices"][0]["written_bytes"], 1_000_000_000);
    assert_eq!(engine["devices"][0]["samples"][1]["at_s"], 0.5);
}
