use super::*;

#[test]
fn a_copy_never_passes_the_end_of_the_page_or_of_the_memory() {
    let page = FRAME_BYTES;
    for (start, len, room, fits) in [
        (0, page, page, true),
        (page - 1, 1, 1, true),
        (page, 0, 0, true),
        (0, 64, 63, false),
        (0, page + 1, 2 * page, false),
        (page - 1, 2, 2, false),
        (page + 1, 0, 0, false),
        (1, usize::MAX, usize::MAX, false),
    ] {
        let copied = std::panic::catch_unwind(|| InPage { page: 0, start, len }.copied(room));
        assert_eq!(copied.ok(), fits.then_some(len), "{len} bytes from {start}, with room for {room}");
    }
}
