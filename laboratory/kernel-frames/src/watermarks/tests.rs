use super::*;

const MIB: u64 = 256;

#[test]
fn marks_are_those_of_the_two_kernels() {
    for (mib, kbytes, min, modern, old) in [
        (1 << 10, 4096, 1024, (1286, 1548), (1280, 1536)),
        (3 << 10, 7094, 1773, (2559, 3345), (2216, 2659)),
        (4 << 10, 8192, 2048, (3096, 4144), (2560, 3072)),
        (16 << 10, 16384, 4096, (8290, 12484), (5120, 6144)),
        (64 << 10, 32768, 8192, (24969, 41746), (10240, 12288)),
        (1 << 20, 131072, 32768, (301203, 569638), (20480, 24576)),
    ] {
        let frames = mib * MIB;
        assert_eq!(min_free_kib(frames, 262_144), kbytes, "{mib} MiB");
        let (low, high) = modern;
        assert_eq!(linux_6_1(frames, frames), Watermarks { min, low, high }, "{mib} MiB");
        let (low, high) = old;
        let min = if mib == 1 << 20 { 16384 } else { min };
        assert_eq!(linux_2009(frames, frames), Watermarks { min, low, high }, "{mib} MiB");
    }
    assert_eq!(min_free_kib(1 << 28, 65_536), 65_536);
    assert_eq!(min_free_kib(64, 65_536), 128);
}

#[test]
fn a_zone_has_its_share_of_the_minimum() {
    assert_eq!(linux_6_1(1024 * MIB, 4096 * MIB).min, 512);
}

#[test]
fn batches_are_one_less_than_a_power_of_two() {
    let sizes = [16, 32, 64, 128, 256, 512, 1024, 4096];
    assert_eq!(sizes.map(|mib| batch_2009(mib * MIB)), [0, 1, 3, 7, 15, 31, 31, 31]);
    assert_eq!(sizes.map(|mib| batch_6_1(mib * MIB)), [0, 1, 3, 7, 15, 31, 63, 63]);
    assert_eq!(high_2009(31), 186);
    assert_eq!(high_6_1(63, 3096, 1 << 20, 2, 0), 1548);
    assert_eq!(high_6_1(63, 3096, 1 << 20, 64, 0), 252);
    assert_eq!(high_6_1(63, 3096, 1 << 20, 2, 8), 65536);
}
