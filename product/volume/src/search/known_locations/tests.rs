use bytes::Bytes;

use super::*;

fn identity(number: u32) -> Identity {
    Identity::new(1, 0, 1, &number.to_le_bytes())
}

#[test]
fn what_was_seen_last_is_kept_and_the_bound_holds() {
    let mut locations = Locations::new(100);
    for number in 0..1_000 {
        let name = Bytes::from(format!("{number}"));
        locations.insert(identity(number), Location { parent: identity(0), name });
        assert!(locations.young.len() + locations.old.len() <= 100);
    }
    for number in 960..1_000 {
        assert_eq!(locations.get(&identity(number)).unwrap().name, format!("{number}"));
    }
    assert_eq!(locations.get(&identity(1)), None);
}

#[test]
fn a_later_place_replaces_an_earlier_one() {
    let mut locations = Locations::new(4);
    let at = |name: &'static str| Location { parent: identity(0), name: Bytes::from(name) };
    locations.insert(identity(1), at("a"));
    locations.insert(identity(2), at("b"));
    locations.insert(identity(3), at("c"));
    locations.insert(identity(1), at("moved"));
    assert_eq!(locations.get(&identity(1)), Some(&at("moved")));
}
