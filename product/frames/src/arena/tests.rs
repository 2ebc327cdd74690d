use super::*;
use crate::layout::memory_bytes;
use crate::{ARENA_BYTES_MAX, ARENA_BYTES_MIN, Frames, Layout};

fn arena(bytes: u64) -> Arena {
    Arena::over(Memory::anonymous(Layout::new(bytes, 64).unwrap()).unwrap())
}

const MIB: u64 = 1 << 20;

#[test]
fn limits_are_said() {
    let memory = memory_bytes();
    for bytes in [0, 4096, ARENA_BYTES_MIN - 1, ARENA_BYTES_MIN + 1, memory + 4096, u64::MAX] {
        let error = Frames::new(bytes).err().expect("refused").to_string();
        let range = format!("between {ARENA_BYTES_MIN} and {}", memory.min(ARENA_BYTES_MAX));
        assert!(error.contains(&range) && error.contains(&bytes.to_string()), "{error}");
    }
}

#[test]
fn prefault_puts_memory_behind_frames_and_keeps_what_they_hold() {
    let arena = arena(8 * MIB);
    let byte = arena.address(FrameId::new(700)).as_ptr();
    // SAFETY: the frame is the arena's, and no other code uses it here.
    unsafe { byte.write(7) };
    arena.prefault(512..1024).unwrap();
    let resident = arena.resident().unwrap();
    let bytes = resident.huge_bytes + resident.base_bytes;
    assert!((2 * MIB..8 * MIB).contains(&bytes), "{resident:?}");
    // SAFETY: as above.
    assert_eq!(unsafe { byte.read() }, 7);
    arena.prefault(0..u32::MAX).unwrap();
    let resident = arena.resident().unwrap();
    assert_eq!(resident.huge_bytes + resident.base_bytes, 8 * MIB, "and no more than there is");
    arena.prefault(5000..6000).unwrap();
    arena.prefault(7..7).unwrap();
}

#[test]
fn prefault_runs_beside_users() {
    let arena = arena(16 * MIB);
    std::thread::scope(|scope| {
        scope.spawn(|| (0..4096).step_by(64).for_each(|first| arena.prefault(first..first + 64).unwrap()));
        for round in 0..4_u8 {
            for frame in 0..arena.frames() {
                let byte = arena.address(FrameId::new(frame)).as_ptr();
                // SAFETY: only this thread uses the frames' contents.
                unsafe {
                    assert_eq!(byte.read(), round);
                    byte.write(round + 1);
                }
            }
        }
    });
}

#[test]
fn smaps_are_summed_over_the_arenas_mappings() {
    let smaps = "\
7f0000000000-7f0000200000 ---p 00000000 00:00 0
Rss:                   0 kB
AnonHugePages:         0 kB
7f0000200000-7f0000800000 rw-p 00000000 00:00 0
Size:               6144 kB
Rss:                4100 kB
AnonHugePages:      4096 kB
VmFlags: rd wr mr mw me ac sd hg
7f0000800000-7f0000900000 rw-p 00000000 00:00 0
Rss:                1024 kB
";
    let resident = Resident::in_smaps(smaps, 0x7f00_0020_0000..0x7f00_0080_0000);
    assert_eq!(resident, Resident { huge_bytes: 4096 << 10, base_bytes: 4 << 10 });
}

#[test]
fn guards_stand_at_both_ends() {
    let arena = arena(MIB);
    let start = arena.address(FrameId::new(0)).as_ptr() as u64;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let ours = format!("{start:x}-{:x} rw-p", start + MIB);
    assert!(maps.contains(&ours), "{ours} in {maps}");
    let ends = |end: u64| maps.lines().any(|line| line.contains("---p") && line.contains(&format!("{end:x}")));
    assert!(ends(start) && ends(start + MIB), "{maps}");
}
