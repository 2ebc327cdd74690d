use super::*;

#[test]
fn the_longest_pause_by_table() {
    let table = [
        (1000, 25_600, 175_000, 200),
        (1000, 25_600, 1000, 5),
        (1000, 25_600, 100, 1),
        (1000, 256, 100, 34),
        (250, 25_600, 175_000, 50),
    ];
    for (hz, bandwidth, device_dirty, ticks) in table {
        assert_eq!(max_pause(hz, bandwidth, device_dirty), ticks, "{hz} {bandwidth} {device_dirty}");
    }
}

#[test]
fn the_shortest_pause_and_the_pages_by_table() {
    let table = [
        (25_600, 25_600, (6, 250)),
        (6400, 6400, (15, 181)),
        (400, 400, (41, 32)),
        (25, 25, (200, 4)),
        (25_600, 1000, (101, 195)),
    ];
    for (limit, task_rate, expected) in table {
        assert_eq!(min_pause(1000, 25_600, limit, task_rate, 200), expected, "{limit} {task_rate}");
    }
}

#[test]
fn pages_until_the_next_question_by_table() {
    for (dirty, pages) in [(0, 256), (100_000, 256), (175_000, 128), (199_990, 2), (199_999, 1), (200_000, 1)] {
        assert_eq!(poll_pages(dirty, 200_000), pages, "{dirty}");
    }
}

#[test]
fn chunks_by_table() {
    let max = u64::MAX;
    let table = [
        (25_600, 200_000, max, 13_312),
        (256, 200_000, max, 1024),
        (2560, 200_000, max, 2048),
        (3072, 200_000, max, 2048),
        (262_144, 200_000, max, 25_600),
        (25_600, 20_000, max, 3072),
        (25_600, 200_000, 100, 1024),
        (25_600, 200_000, 1024, 2048),
    ];
    for (bandwidth, hard_limit, asked, pages) in table {
        assert_eq!(chunk_pages(bandwidth, hard_limit, asked), pages, "{bandwidth} {hard_limit} {asked}");
    }
}
