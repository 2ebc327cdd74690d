use super::*;

#[test]
fn parts_begin_on_borders_and_do_not_overlap() {
    for (bytes, files) in [(ARENA_BYTES_MIN, 1), (3 << 20, 77), (64 << 20, FILE_SLOTS)] {
        let layout = Layout::new(bytes, files).unwrap();
        let [files, records, replies, marks, clients] =
            [Part::Files, Part::Records, Part::Replies, Part::Marks, Part::Clients].map(|part| layout.part(part));
        let parts = [0..HEADER_BYTES, files, records, replies, marks, clients, layout.gap(), layout.frame_bytes()];
        for pair in parts.windows(2) {
            assert!(pair[0].end <= pair[1].start, "{parts:?}");
            assert_eq!(pair[1].start % HUGE_BYTES, 0, "{parts:?}");
        }
        assert_eq!(layout.frame_bytes().len() as u64, bytes);
        assert_eq!(layout.bytes(), parts[7].end);
    }
}

#[test]
fn a_small_memory_that_ends_with_its_process_has_room_for_all_clients() {
    let bytes = |layout: Layout| layout.part(Part::Clients).len();
    for arena in [ARENA_BYTES_MIN, 16 << 20, 64 << 20] {
        let layout = Layout::new(arena, FILE_SLOTS).unwrap();
        assert_eq!(bytes(layout), (arena as usize / CLIENT_STATE_FRAMES).min(CLIENT_STATE_BYTES_MAX));
        assert_eq!(bytes(layout.with_most_client_state()), CLIENT_STATE_BYTES_MAX);
    }
}

#[test]
fn another_size_or_number_is_another_hash() {
    let layouts = [
        Layout::new(1 << 20, 64),
        Layout::new(1 << 21, 64),
        Layout::new(1 << 20, 65),
        Layout::keeping(1 << 20, 16, 64),
    ];
    let hashes: std::collections::BTreeSet<u64> = layouts.into_iter().map(|layout| layout.unwrap().hash()).collect();
    assert_eq!(hashes.len(), 4);
}
