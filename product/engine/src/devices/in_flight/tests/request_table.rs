use super::super::*;

fn placed(entries: &RequestTable, file: u32) -> (RequestEntry, u64) {
    let entry = entries.begin(file, Load::Read, Nanos(7));
    let number = entries.all().filter(|request| request.file == file).map(|request| request.number).max().unwrap();
    (entry, number)
}

#[test]
fn a_request_is_set_aside_once_and_only_while_it_is_in_flight() {
    let entries = RequestTable::new(2);
    let (entry, number) = placed(&entries, 1);
    assert!(entries.try_set_aside(number) && !entries.try_set_aside(number));
    let ended = entries.end(entry);
    assert!(ended.is_aside && ended.number == number && ended.submitted == Nanos(7));
    assert!(!entries.try_set_aside(number), "it has ended");
    for file in 2..10 {
        let (entry, other) = placed(&entries, file);
        assert!(other > number && !entries.try_set_aside(number), "its place has another request");
        assert!(!entries.end(entry).is_aside);
    }
}

#[test]
fn as_many_requests_are_set_aside_as_there_are_slots_and_each_finds_a_place() {
    let entries = RequestTable::new(3);
    let begun: Vec<_> = (0..3).map(|file| placed(&entries, file)).collect();
    assert!(begun.iter().all(|(_, number)| entries.try_set_aside(*number)));
    let more: Vec<_> = (3..6).map(|file| placed(&entries, file)).collect();
    assert!(
        more.iter().all(|(_, number)| !entries.try_set_aside(*number)),
        "no slot would be left to look for a place with"
    );
    assert_eq!(entries.all().count(), 6);
    assert!(entries.end(begun[1].0).is_aside);
    assert!(entries.try_set_aside(more[2].1));
    let (last, _) = placed(&entries, 6);
    assert_eq!(entries.all().count(), 6);
    assert!(!entries.end(last).is_aside);
}
