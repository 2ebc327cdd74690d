use super::*;

const LARGE: Bounds = Bounds { size_max: 256, file_pages: 1 << 20 };

/// Reads that all miss, each with what is to be read ahead of it.
fn check(bounds: Bounds, reads: &[(Range<u64>, Range<u64>)]) -> Window {
    let mut window = Window::default();
    for (number, (read, ahead)) in reads.iter().enumerate() {
        let got = window.missed(read, bounds);
        assert_eq!((got.start, got.end - got.start), (read.end, ahead.end - ahead.start), "read {number}, {read:?}");
        if !ahead.is_empty() {
            assert_eq!(got, *ahead, "read {number}, {read:?}");
        }
    }
    window
}

/// Nothing to be read ahead.
const NONE: Range<u64> = 0..0;

#[test]
fn a_file_read_from_its_start_gets_a_doubling_window() {
    let mut window = check(LARGE, &[(0..1, 1..17)]);
    assert_eq!(window.trigger(), Some(9));
    assert_eq!(window.used(&(9..10), LARGE), 17..42);
    assert_eq!(window.used(&(29..30), LARGE), 42..94);
    for page in [60, 90, 200, 400] {
        window.used(&(page - 1..page), LARGE);
    }
    assert_eq!(window.trigger(), Some(400 + 256 - 128));
}

#[test]
fn the_knob_bounds_the_window_and_zero_closes_it() {
    let (small, none) = (Bounds { size_max: 32, ..LARGE }, Bounds { size_max: 0, ..LARGE });
    let mut window = check(small, &[(0..64, 64..96)]);
    assert_eq!(window.missed(&(96..97), none), 97..97);
    assert_eq!(window.trigger(), None);
    assert_eq!(window.used(&(99..100), small), NONE);
}

#[test]
fn a_window_opens_on_exact_succession() {
    check(LARGE, &[(1000..1001, NONE), (5000..5004, NONE), (5004..5008, 5008..5024)]);
    // Near, ahead or behind, is not succession.
    check(LARGE, &[(5000..5004, NONE), (5005..5009, NONE), (5012..5016, NONE), (5008..5012, NONE)]);
    check(LARGE, &[(5000..5004, NONE), (4996..5000, NONE), (5000..5004, 5004..5020)]);
}

#[test]
fn chance_opens_a_small_part_of_a_small_file() {
    let small = Bounds { size_max: 256, file_pages: 128 };
    check(small, &[(70..71, NONE), (9..10, NONE), (10..11, 11..15), (70..71, NONE), (71..72, 72..76)]);
    // Three reads in a row are no chance any more.
    check(small, &[(70..71, NONE), (71..72, 72..76), (72..73, 73..77), (73..74, 74..82)]);
    let tiny = Bounds { size_max: 256, file_pages: 16 };
    check(tiny, &[(3..4, NONE), (4..5, NONE), (5..6, NONE), (6..7, 7..23)]);
}

#[test]
fn a_stream_survives_reads_elsewhere_and_many_close_it() {
    let stream = [(0..16, 16..48), (48..64, 64..128), (128..144, 144..272)];
    let mut window = check(LARGE, &stream);
    assert_eq!(window.missed(&(90_000..90_001), LARGE), 90_001..90_001);
    assert_eq!(window.missed(&(272..288), LARGE), 288..544);
    for page in 0..u64::from(TRUST_MAX / ELSEWHERE_COST) {
        window.missed(&(500_000 - 1000 * page..500_001 - 1000 * page), LARGE);
    }
    assert_eq!(window.trigger(), None);
    assert_eq!(window.missed(&(544..560), LARGE), 560..560);
}

#[test]
fn calls_that_overtake_each_other_are_one_stream() {
    let mut window = check(LARGE, &[(0..16, 16..48)]);
    // 48..96 comes late; what is ahead was read for all of them.
    assert_eq!(window.missed(&(96..112), LARGE), 112..176);
    assert_eq!(window.missed(&(48..64), LARGE), 64..176);
    assert_eq!(window.missed(&(80..96), LARGE), 96..176);
    // Further away than calls can overtake each other.
    let far = 176 + 16 * OVERTAKEN_MAX + 1;
    assert_eq!(window.missed(&(far..far + 16), LARGE), far + 16..far + 16);
}

#[test]
fn the_first_read_of_a_file_may_be_overtaken() {
    check(LARGE, &[(32..48, NONE), (0..16, 16..48), (96..112, 112..176)]);
}

#[test]
fn a_file_read_again_from_its_start_keeps_its_window() {
    let file = Bounds { size_max: 256, file_pages: 512 };
    let mut window = check(file, &[(0..16, 16..48), (48..64, 64..128), (128..144, 144..272), (272..288, 288..544)]);
    assert_eq!(window.missed(&(0..16), file), 16..272);
}

#[test]
fn a_read_served_in_parts_is_one_read() {
    check(LARGE, &[(1000..1256, NONE), (1032..1256, NONE), (1100..1256, NONE)]);
    check(LARGE, &[(0..64, 64..192), (32..64, 64..192), (192..256, 256..512)]);
}

/// Reads of random places, none of which is ever in the cache: the most that chance can cost.
#[test]
fn random_reads_cost_little_more_than_was_asked() {
    let mut bits = 1u64;
    let mut random = move |below: u64| {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        (bits >> 11) % below
    };
    for file_pages in [2, 3, 4, 5, 7, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024, 4096, 65_536] {
        for block in [1, 2, 4, 16, 64] {
            if file_pages < 2 * block {
                continue;
            }
            let (bounds, mut window) = (Bounds { size_max: 256, file_pages }, Window::default());
            let (mut asked, mut read) = (0, 0);
            while asked < 200_000 * block {
                let start = random(file_pages / block) * block;
                let ahead = window.missed(&(start..start + block), bounds);
                asked += block;
                read += block + ahead.end.min(file_pages).saturating_sub(ahead.start);
            }
            assert!(read * 10 <= asked * 11, "{read} pages of {asked}, reads of {block} in a file of {file_pages}");
        }
    }
}
