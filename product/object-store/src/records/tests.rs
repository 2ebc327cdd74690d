use super::*;
use crate::options::Options;
use crate::store::Store;
use crate::threads::wait;

// rule: callers whose changes wait for nothing leave the database a bounded number of batches behind
// kept in: `product/object-store/src/records/mod.rs`
#[test]
fn a_reader_waits_while_the_database_is_far_behind() {
    let store = wait(Store::open("memory:", &Options::default())).unwrap().unwrap();
    let records = wait(store.records()).unwrap().unwrap();
    for round in 0..20_u64 {
        let mut last = Sequence::default();
        for at in 0..BEHIND_MAX {
            last = records.apply(vec![RecordChange::Put(at.to_be_bytes().to_vec(), Vec::new())]).unwrap();
        }
        let nobody = wait(records.scan(b"x".to_vec(), b"x\0".to_vec(), Durability::Applied)).unwrap().unwrap();
        assert_eq!(nobody, []);
        let written = records.tasks.demand.borrow().written;
        assert!(last.0 - written.0 <= BEHIND_MAX, "round {round}: {written:?} of {last:?} were taken");
    }
}
