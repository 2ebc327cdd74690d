use super::*;

fn placed(places: &RequestPlaces, file: u32) -> (Place, u64) {
    let place = places.begin(file, Load::Read, Nanos(7));
    let number = places.all().filter(|request| request.file == file).map(|request| request.number).max().unwrap();
    (place, number)
}

#[test]
fn a_request_is_set_aside_once_and_only_while_it_is_in_flight() {
    let places = RequestPlaces::new(2);
    let (place, number) = placed(&places, 1);
    assert!(places.try_set_aside(number) && !places.try_set_aside(number));
    let ended = places.end(place);
    assert!(ended.is_aside && ended.number == number && ended.submitted == Nanos(7));
    assert!(!places.try_set_aside(number), "it has ended");
    for file in 2..10 {
        let (place, other) = placed(&places, file);
        assert!(other > number && !places.try_set_aside(number), "its place has another request");
        assert!(!places.end(place).is_aside);
    }
}

#[test]
fn as_many_requests_are_set_aside_as_there_are_slots_and_each_finds_a_place() {
    let places = RequestPlaces::new(3);
    let begun: Vec<_> = (0..3).map(|file| placed(&places, file)).collect();
    assert!(begun.iter().all(|(_, number)| places.try_set_aside(*number)));
    let more: Vec<_> = (3..6).map(|file| placed(&places, file)).collect();
    assert!(
        more.iter().all(|(_, number)| !places.try_set_aside(*number)),
        "no slot would be left to look for a place with"
    );
    assert_eq!(places.all().count(), 6);
    assert!(places.end(begun[1].0).is_aside);
    assert!(places.try_set_aside(more[2].1));
    let (last, _) = placed(&places, 6);
    assert_eq!(places.all().count(), 6);
    assert!(!places.end(last).is_aside);
}
