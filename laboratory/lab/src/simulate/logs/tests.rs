use afflux_workloads::Logs;

use super::*;

fn log(mean_ns: u64) -> JobLog {
    let call = |ms: u64, direction| LoggedCall {
        at_ns: ms * 1_000_000,
        took_ns: ms * 1000,
        bytes: 4096,
        offset: 0,
        direction,
    };
    let name = |name: &str| Some(name.to_owned());
    JobLog {
        number: 3,
        logs: Logs { bandwidth: name("b"), latency: name("l"), calls: name("i"), mean_ns },
        calls: vec![call(1, 0), call(2, 1), call(400, 0), call(700, 0)],
        left_out: 0,
    }
}

#[test]
fn lines_are_fios() {
    let files = files(&log(0));
    let of = |name: &str| files.iter().find(|file| file.0 == name).map(|file| file.1.as_str());
    assert_eq!(of("b_bw.3.log"), Some("500, 16, 0, 4096, 0\n1000, 8, 0, 4096, 0\n500, 8, 1, 4096, 0\n"));
    assert_eq!(of("i_iops.3.log"), Some("500, 4, 0, 4096, 0\n1000, 2, 0, 4096, 0\n500, 2, 1, 4096, 0\n"));
    let each = "1, 1000, 0, 4096, 0\n2, 2000, 1, 4096, 0\n400, 400000, 0, 4096, 0\n700, 700000, 0, 4096, 0\n";
    assert_eq!(of("l_lat.3.log"), Some(each));
    assert_eq!(of("l_clat.3.log"), Some(each));
}

#[test]
fn means_are_over_the_time_asked_for() {
    let files = files(&log(1_000_000_000));
    let of = |name: &str| files.iter().find(|file| file.0 == name).map(|file| file.1.as_str());
    assert_eq!(of("l_lat.3.log"), Some("1000, 367000, 0, 4096, 0\n1000, 2000, 1, 4096, 0\n"));
    assert_eq!(of("b_bw.3.log"), Some("1000, 12, 0, 4096, 0\n1000, 4, 1, 4096, 0\n"));
}
