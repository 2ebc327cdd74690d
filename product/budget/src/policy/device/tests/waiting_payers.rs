use super::super::*;

#[test]
fn nobody_counts_as_one() {
    let waiting = WaitingPayers::default();
    assert_eq!((waiting.sharing(), waiting.on_average()), (1, 1));
}

#[test]
fn a_share_follows_at_once_upwards_and_in_a_tenth_of_a_second_downwards() {
    let mut waiting = WaitingPayers::default();
    waiting.note(0, 40);
    assert_eq!((waiting.sharing(), waiting.on_average()), (40, 1));
    waiting.note(100 * MILLISECOND, 0);
    assert_eq!((waiting.sharing(), waiting.on_average()), (40, 4));
    waiting.note(150 * MILLISECOND, 0);
    assert_eq!(waiting.sharing(), 20);
    waiting.note(250 * MILLISECOND, 0);
    assert_eq!(waiting.sharing(), 1);
}

#[test]
fn the_long_average_takes_a_second() {
    let mut waiting = WaitingPayers::default();
    for at in 0..=100 {
        waiting.note(at * 10 * MILLISECOND, 10);
    }
    assert!((6..=10).contains(&waiting.on_average()), "{}", waiting.on_average());
    waiting.note(3000 * MILLISECOND, 10);
    assert_eq!(waiting.on_average(), 10);
}

#[test]
fn a_client_s_part_is_divided_among_its_payers_and_others_count_until_a_tenth_of_a_second_after_they_were_seen() {
    let mut waiting = WaitingPayers::default();
    waiting.note(0, 21);
    let payer = |clients, client_payers| PayerCounts { clients, client_payers, ..PayerCounts::default() };
    assert_eq!(waiting.sharing_with(0, &payer(1, 1)), 21, "one client: as many as wait");
    assert_eq!(waiting.sharing_with(0, &payer(2, 1)), 2);
    assert_eq!(waiting.sharing_with(0, &payer(2, 20)), 40);
    assert_eq!(waiting.sharing_with(50 * MILLISECOND, &payer(1, 20)), 40, "the other is awake for a moment");
    assert_eq!(waiting.sharing_with(200 * MILLISECOND, &payer(1, 20)), 21);
}
