use super::*;

#[test]
fn a_file_is_made_without_the_lock() {
    let table = FileTable::default();
    let made = |slot| {
        assert!(table.0.try_lock().is_ok(), "a file's own locks may be taken while it is made");
        slot
    };
    table.reserve(&BTreeSet::from([1]));
    let files = [table.add(made), table.add_at(1, made), table.add(made)];
    assert_eq!(files.each_ref().map(|file| **file), [0, 1, 2]);
    assert!(files.iter().all(|file| table.get(**file).is_some_and(|found| Arc::ptr_eq(&found, file))));
    table.remove(1);
    assert_eq!((table.count(), table.get(1).is_none(), *table.add(made)), (2, true, 1));
}
