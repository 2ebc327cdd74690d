use std::collections::HashSet;

use super::*;

/// Steps of each thread of a multi-threaded test: `few`, or the environment's number for a soak.
pub(crate) fn soak_steps(few: usize) -> usize {
    let given = std::env::var("AFFLUX_SOAK_STEPS").ok();
    given.map_or(few, |text| text.parse().expect("AFFLUX_SOAK_STEPS is a number of steps"))
}

fn small() -> Frames {
    Frames::new(1 << 20).expect("1 MiB")
}

#[test]
fn sizes_outside_the_limits_name_the_limits() {
    for bytes in [0, 4095, 63 * 4096, (1 << 20) + 1, 1 << 43, u64::MAX] {
        let error = Frames::new(bytes).err().expect("refused").to_string();
        assert!(error.contains(&bytes.to_string()) && error.contains("262144"), "{error}");
    }
}

#[test]
fn every_frame_is_handed_out_once_and_exhaustion_is_a_value() {
    let frames = small();
    let mut seen = HashSet::new();
    while let Some(frame) = frames.allocate(Effort::Reserve) {
        assert!(seen.insert(frame));
    }
    assert_eq!(seen.len() as u32, frames.total());
    assert_eq!(frames.free_count(), 0);
    for frame in &seen {
        frames.free(*frame);
    }
    assert_eq!(frames.free_count(), frames.total());
    assert!(frames.allocate(Effort::NoRetry).is_some());
}

#[test]
fn effort_decides_how_deep_an_allocation_may_dig() {
    let frames = small();
    let take_all = |effort| frames.allocate_bulk(u32::MAX, effort, |_| {});
    take_all(Effort::NoRetry);
    assert_eq!(frames.free_count(), frames.watermarks().low);
    assert!(take_all(Effort::Normal) > 0);
    assert!(frames.free_count() > 0);
    assert!(take_all(Effort::Reserve) > 0);
    assert_eq!(frames.free_count(), 0);
}

#[test]
fn frames_are_distinct_writable_memory() {
    let frames = small();
    let mut taken = Vec::new();
    frames.allocate_bulk(64, Effort::Normal, |frame| taken.push(frame));
    for frame in &taken {
        // SAFETY: the frame was just handed to us and is 4096 bytes long.
        unsafe { std::ptr::write_bytes(frames.address(*frame).as_ptr(), frame.raw() as u8, FRAME_BYTES) };
    }
    for frame in &taken {
        // SAFETY: as above; written before.
        let bytes = unsafe { std::slice::from_raw_parts(frames.address(*frame).as_ptr(), FRAME_BYTES) };
        assert!(bytes.iter().all(|byte| *byte == frame.raw() as u8));
    }
}

/// Runs in a process of its own, since it aborts: this test again, told to free twice.
#[test]
fn a_double_free_aborts_with_the_frames_last_events() {
    const TOLD: &str = "AFFLUX_TEST_FREES_TWICE";
    if std::env::var_os(TOLD).is_some() {
        let frames = small();
        let frame = frames.allocate(Effort::Normal).unwrap();
        frames.free(frame);
        frames.free(frame);
        return;
    }
    let name = "tests::a_double_free_aborts_with_the_frames_last_events";
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    let output = again.args(["--exact", name, "--nocapture"]).env(TOLD, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), None, "ended by a signal: {said}");
    assert!(said.contains("afflux: frame ") && said.contains("is free already"), "{said}");
    assert!(said.contains("its last events: allocated in slot"), "{said}");
}

#[test]
fn a_stamped_arena_keeps_the_first_bytes_of_each_frame_apart() {
    let frames = Frames::new_stamped(1 << 30).expect("1 GiB of 4 MiB");
    assert_eq!((frames.total(), frames.backed_bytes()), (1 << 18, STAMP_BYTES));
    let address = |frame| frames.address(FrameId::new(frame)).as_ptr();
    assert_eq!(address(frames.total() - 1) as usize - address(0) as usize, (frames.total() as usize - 1) * STAMP_BYTES);
    for frame in 0..frames.total() {
        // SAFETY: the arena backs 16 bytes of the frame, and no other code has it.
        unsafe { address(frame).cast::<u32>().write(frame) };
    }
    // SAFETY: as above; written before.
    assert!((0..frames.total()).all(|frame| unsafe { address(frame).cast::<u32>().read() } == frame));
    assert_eq!(small().backed_bytes(), FRAME_BYTES);
    assert!(Frames::new_stamped(63 * 4096).is_err());
}
