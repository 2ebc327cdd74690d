use afflux_simulator::CostTable;

use super::*;

#[test]
fn a_quick_run_finds_every_cost_and_its_table_can_be_read() {
    let rows = rows(&measure::rounds(true, 1).unwrap());
    let value = |name| rows.iter().find(|row| row.name == name).map(|row| row.value);
    // A cost that is measured by itself is above zero.
    for name in ["step", "read_hit_pages", "write_hit_pages"] {
        assert!(value(name).is_some_and(|ns| ns > 0.0), "{name}: {:?}", value(name));
    }
    // A cost from the difference of two measurements can vanish if other processes slowed the smaller one.
    for name in ["nr_dirtied", "read_requests", "nr_written"] {
        assert!(value(name).is_some_and(|ns| ns >= 0.0 && ns.is_finite()), "{name}: {:?}", value(name));
    }
    let table = table("here \"and\" now", &rows, 1);
    assert_eq!(table.costs().len(), rows.len());
    assert_eq!(CostTable::parse("calibrated.toml", &table.to_text()).unwrap(), table);
}

#[test]
fn medians_and_spreads_are_of_all_rounds() {
    let round = |ns| vec![measure::Measured { of: CostOf::Step, ns, how: "test" }];
    let rows = rows(&[round(3.0), round(1.0), round(2.0)]);
    assert_eq!((rows[0].value, rows[0].min, rows[0].max), (2.0, 1.0, 3.0));
    assert_eq!(line(&rows[0]), "step                  2.000 ns/step     (1.000 to 3.000)  test");
}
