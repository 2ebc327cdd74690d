use super::*;
use crate::fio::job_of;

#[test]
fn file_sizes_follow_the_rules() {
    let sizes = |options| -> Vec<u64> {
        shares(&job_of(options), 0, &[None; 50], &mut Random::new(3)).iter().map(|share| share.file_bytes).collect()
    };
    assert_eq!(sizes("size=100k nrfiles=3"), [34133; 3]);
    assert_eq!(sizes("size=100k nrfiles=3 bs=512"), [34133; 3]);
    assert_eq!(sizes("size=10 nrfiles=4 bs=1"), [3, 3, 2, 2]);
    assert_eq!(sizes("filesize=64k nrfiles=2 size=1m"), [65536; 2]);
    let drawn = sizes("filesize=4k-64k nrfiles=50 size=1m");
    assert!(drawn.iter().all(|bytes| (4096..=65536).contains(bytes) && bytes % 4096 == 0));
    assert!(drawn.iter().any(|bytes| *bytes != drawn[0]));
}

#[test]
fn offsets_and_devices_follow_the_rules() {
    let share = |options: &str, clone: u64, device: Option<u64>| {
        let share = shares(&job_of(options), clone, &[device], &mut Random::new(3))[0];
        (share.file_bytes, share.start, share.job_bytes)
    };
    assert_eq!(share("size=64k offset=16k", 0, None), (81920, 16384, 65536));
    assert_eq!(share("filesize=64k offset=16k", 0, None), (65536, 16384, 49152));
    assert_eq!(share("size=64k offset_increment=64k", 2, None), (196_608, 131_072, 65536));
    assert_eq!(share("filename=/dev/x", 0, Some(1 << 30)), (1 << 30, 0, 1 << 30));
    assert_eq!(share("filename=/dev/x size=25%", 0, Some(1 << 30)), (1 << 30, 0, 1 << 28));
    assert_eq!(share("filename=/dev/x offset=50%", 0, Some(1 << 30)), (1 << 30, 1 << 29, 1 << 29));
    assert_eq!(share("filename=/dev/x size=1m", 0, Some(1 << 30)), (1 << 30, 0, 1 << 20));
    assert_eq!(share("filename=/dev/x size=2m offset=1m", 0, Some(2 << 20)), (2 << 20, 1 << 20, 1 << 20), "no further");
    assert_eq!(share("filename=/dev/x offset=4m", 0, Some(2 << 20)).2, 0);
}
