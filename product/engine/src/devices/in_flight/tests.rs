mod in_order;
mod request_table;

use super::*;

const PRICES: Prices = Prices { page: Cost(1), run: Cost(100) };
const SLOT: u32 = 7;

fn set(device: &InFlight, flight: Flight) {
    device.set(Terms { flight, prices: PRICES });
}

#[test]
fn so_many_requests_follow_whatever_they_cost_and_more_while_they_are_cheap() {
    let flight = Flight { requests: 4, cost_max: Cost(1000), ..Flight::BY_KNOBS };
    // Pages and runs in flight, the most requests at any moment, and at this one.
    let table = [
        (0, 0, 32, 32),
        (999, 0, 32, 32),
        (1000, 0, 32, 4),
        (1000, 0, 3, 3),
        (399, 6, 32, 32),
        (400, 6, 32, 4),
        (1 << 60, 1 << 60, 4, 4),
    ];
    for (pages, runs, most, now) in table {
        let device = InFlight::new();
        assert_eq!(device.requests_now(&device.terms(), most, pages), most, "the knobs look at no cost");
        set(&device, flight);
        device.begin(SLOT, pages, runs, false);
        assert_eq!(device.requests_now(&device.terms(), most, pages), now, "{pages} pages in {runs} runs, of {most}");
        set(&device, Flight { requests: 0, ..flight });
        assert!(device.requests_now(&device.terms(), most, pages) >= 1, "an idle device is given something");
    }
}

// rule: while names are made durable, little data is in flight to their device
// kept in: `product/engine/src/devices/in_flight.rs`
#[test]
fn while_names_are_made_durable_an_eighth_may_be_in_flight() {
    let device = InFlight::new();
    let _ticket = device.begin(SLOT, 125, 0, false);
    device.names_begin();
    assert_eq!(device.requests_now(&device.terms(), 32, 125), 32, "the knobs look at no cost");
    set(&device, Flight { requests: 4, cost_max: Cost(1000), ..Flight::BY_KNOBS });
    assert_eq!(device.requests_now(&device.terms(), 32, 124), 32);
    assert_eq!(device.requests_now(&device.terms(), 32, 125), 1);
    device.names_begin();
    assert!(!device.remove_name());
    assert_eq!(device.requests_now(&device.terms(), 32, 125), 1, "one is left");
    assert!(device.remove_name(), "the last: who waits looks again");
    assert_eq!(device.requests_now(&device.terms(), 32, 125), 32);
}

#[test]
fn a_request_set_aside_costs_nothing_and_no_sync_waits_for_it_ahead_of_others() {
    let device = InFlight::new();
    set(&device, Flight { requests: 4, cost_max: Cost(1000), ..Flight::BY_KNOBS });
    let ticket = device.begin(SLOT, 1000, 1, true);
    assert_eq!(device.requests_now(&device.terms(), 32, 1000), 4);
    device.set_aside(ticket, 1000);
    assert_eq!((device.requests_now(&device.terms(), 32, 1000), device.runs(), device.aside_pages()), (32, 0, 1000));
    device.take_back(ticket, 1000);
    assert_eq!((device.requests_now(&device.terms(), 32, 1000), device.runs(), device.aside_pages()), (4, 1, 0));
    device.end(ticket);
    assert_eq!(device.runs(), 0);
}

#[test]
fn a_sync_goes_first_until_it_has_used_its_lead_and_then_by_turns() {
    let device = InFlight::new();
    device.begin(SLOT, 1 << 40, 1, true);
    assert!(!device.is_sync_ahead(), "syncs first always");
    set(&device, Flight { sync_lead: Cost(1000), ..Flight::BY_KNOBS });
    // A seek there and back: 201 each.
    for number in 0..5 {
        assert!(!device.is_sync_ahead(), "sync {number}");
        device.begin(SLOT, 1, 1, true);
    }
    assert!(device.is_sync_ahead());
    device.begin(SLOT, 5, 0, false);
    assert!(device.is_sync_ahead(), "exactly the lead");
    device.begin(SLOT, 1, 0, false);
    assert!(!device.is_sync_ahead());
    device.begin(SLOT, 1 << 30, 1, false);
    device.begin(SLOT, 999, 0, true);
    assert!(!device.is_sync_ahead(), "what the rest used before is no credit of syncs");
    device.begin(SLOT, 9999, 0, true);
    device.nothing_but_syncs();
    device.begin(SLOT, 1, 0, false);
    assert!(!device.is_sync_ahead(), "nobody was kept from what it used");
}

#[test]
fn a_sync_that_was_passed_keeps_others_back_until_it_ends() {
    let device = InFlight::new();
    let flight = Flight { sync_lead: Cost(1000), ..Flight::BY_KNOBS };
    let (early, _) = (device.begin(SLOT, 1, 1, true), device.begin(SLOT, 1, 1, false));
    device.end(early);
    assert!(!device.was_sync_passed(), "the knobs know no passing");
    set(&device, flight);
    let [stream, sync, other, last] = [false, true, false, true].map(|for_sync| device.begin(SLOT, 1, 1, for_sync));
    device.end(stream);
    assert!(!device.was_sync_passed(), "it was submitted before");
    device.end(other);
    assert!(device.was_sync_passed());
    device.end(sync);
    assert!(!device.was_sync_passed(), "the last was passed by nobody");
    device.end(last);
    assert_eq!((device.runs(), device.was_sync_passed()), (1, false));
}

#[test]
fn what_was_in_flight_to_a_file_before_its_sync_is_not_passed_for_ever_either() {
    let device = InFlight::new();
    set(&device, Flight { sync_lead: Cost(1000), ..Flight::BY_KNOBS });
    let [before, other, last] = [SLOT, SLOT + 1, SLOT + 1].map(|slot| device.begin(slot, 1, 1, false));
    device.end(other);
    assert!(!device.was_sync_passed(), "nobody waits for it");
    let waits = device.sync_waits(SLOT);
    assert!(device.was_sync_passed());
    device.end(before);
    assert!(!device.was_sync_passed());
    let [during, beside] = [SLOT, SLOT + 1].map(|slot| device.begin(slot, 1, 1, false));
    device.end(beside);
    assert!(device.was_sync_passed(), "claimed before the round marked it, submitted after it began");
    device.end(during);
    drop(waits);
    let [after, beside] = [SLOT, SLOT + 1].map(|slot| device.begin(slot, 1, 1, false));
    device.end(beside);
    assert!(!device.was_sync_passed(), "the sync is over");
    device.end(after);
    device.end(last);
}
