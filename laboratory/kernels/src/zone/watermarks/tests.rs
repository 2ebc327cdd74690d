use super::*;

const MIB: u64 = 256;

#[test]
fn marks_are_those_of_the_kernel() {
    for (mib, min, low, high) in [
        (1 << 10, 1024, 1280, 1536),
        (3 << 10, 1773, 2216, 2659),
        (4 << 10, 2048, 2560, 3072),
        (16 << 10, 4096, 5120, 6144),
        (64 << 10, 8192, 10240, 12288),
        (1 << 20, 16384, 20480, 24576),
    ] {
        let frames = mib * MIB;
        assert_eq!(linux_2009(frames, frames), Watermarks { min, low, high }, "{mib} MiB");
    }
    assert_eq!(linux_2009(64, 64).min, 32, "128 KiB at least");
    assert_eq!(linux_2009(1024 * MIB, 4096 * MIB).min, 512, "a zone has its share");
}

#[test]
fn batches_are_one_less_than_a_power_of_two() {
    let sizes = [16, 32, 64, 128, 256, 512, 1024, 4096];
    assert_eq!(sizes.map(|mib| batch_2009(mib * MIB)), [0, 1, 3, 7, 15, 31, 31, 31]);
    assert_eq!(high_2009(31), 186);
}
