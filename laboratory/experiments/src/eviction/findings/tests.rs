use super::*;
use crate::eviction::references::Counts;

fn cell(percent: [u64; 9]) -> Cell {
    let counts = percent.map(|hits| Counts { hits, touches: 100 }).to_vec();
    Cell { generator: "zipf-0.8", scans: true, part: 16, counts, looks: vec![None; 9] }
}

fn case(kind: EvictionKind, device_us: f64, client_us: f64) -> Case {
    let cost = Cost { device_us, client_us, ..Cost::default() };
    Case { device: "disk".to_owned(), generator: "zipf-0.8", part: 16, kind, cost, delays: serde_json::Value::Null }
}

#[test]
fn what_is_saved_and_where_the_default_is_behind_is_said() {
    // FIFO has 60 misses and the default 30, 30 and 45; in the last row it is 15 points behind s3-fifo.
    let ahead = cell([40, 40, 40, 40, 40, 40, 70, 70, 100]);
    let cells = [ahead.clone(), ahead, cell([40, 40, 40, 40, 70, 40, 55, 55, 100])];
    let found = findings(&cells, &[], &[]);
    assert!(
        found.answer.contains("s3-window saves 41.7 % in the mean") && found.answer.contains("in 2 of 3 rows"),
        "{}",
        found.answer
    );
    let said = found.says.join(" ");
    assert!(said.contains("It is further behind, in points: zipf-0.8 at 1/16 by 15.0."), "{said}");
    assert!(said.contains("it is above two-list in 3 of 3 rows"), "{said}");
}

#[test]
fn time_on_devices_is_against_two_list() {
    // A fifth less of the device's time, a quarter more of the clients'.
    let times = |kind| if kind == EvictionKind::S3Window { (80.0, 50.0) } else { (100.0, 40.0) };
    let cases = ENGINES.map(|kind| case(kind, times(kind).0, times(kind).1));
    let said = devices_said(&cases);
    assert!(said.contains("saves 20.0 % of the device's time for a request in the mean of 1 loads"), "{said}");
    assert!(said.contains("and -25.0 % of the clients'"), "{said}");
}
