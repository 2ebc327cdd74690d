use super::*;

#[test]
fn a_client_keeps_its_account_and_those_who_were_not_seen_for_longest_are_forgotten() {
    let payers = ClientPayers::default();
    let of = |number: usize| payers.of(&Client::named(&format!("client {number}")));
    let (busy, first) = (of(0), Arc::downgrade(&of(1)));
    assert!(Arc::ptr_eq(&busy, &of(0)));
    let again = Arc::downgrade(&of(2));
    (3..CLIENTS_MAX).for_each(|number| drop(of(number)));
    drop(of(2));
    assert!(first.upgrade().is_some(), "there is room for all");
    drop(of(CLIENTS_MAX));
    assert!(first.upgrade().is_none() && again.upgrade().is_some());
    (0..2 * CLIENTS_MAX).for_each(|number| drop(of(1000 + number)));
    assert!(again.upgrade().is_none());
    assert!(Arc::ptr_eq(&busy, &of(0)), "a write of it is under way");
    assert!(lock(&payers.0).by_client.len() <= CLIENTS_MAX);
}
