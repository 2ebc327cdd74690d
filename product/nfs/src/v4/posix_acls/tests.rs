use super::*;

fn entry(tag: u32, permissions: u32, who: &str) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.words([tag, permissions]);
    writer.opaque(who.as_bytes());
    writer.into_bytes()
}

fn list(entries: &[Vec<u8>]) -> Vec<u8> {
    [&(entries.len() as u32).to_be_bytes()[..], &entries.concat()].concat()
}

/// The host's form of a list with numbers for owners.
fn set(wire: &[u8]) -> Result<Vec<u8>, NfsStatus> {
    let entries = read(&mut Reader::new(wire))?;
    let ids = entries.iter().filter_map(|entry| match entry.who()?.1 {
        Principal::Number(id) => Some(*id),
        Principal::Name(_) => panic!("a name"),
    });
    Ok(to_host(&entries, &ids.collect::<Vec<_>>()))
}

fn shown(host: &[u8]) -> Result<Vec<u8>, NfsStatus> {
    let mut writer = Writer::default();
    write_host(&mut writer, host).map(|()| writer.into_bytes())
}

#[test]
fn a_list_comes_back_as_it_was_set_in_any_order() {
    let ordered = [
        entry(1, 7, ""),
        entry(2, 6, "1000"),
        entry(2, 4, "1001"),
        entry(3, 5, ""),
        entry(4, 1, "7"),
        entry(5, 7, ""),
        entry(6, 0, ""),
    ];
    let host = set(&list(&ordered)).unwrap();
    assert_eq!(host[..12], [2, 0, 0, 0, 1, 0, 7, 0, 0xff, 0xff, 0xff, 0xff], "as acl(5) stores it");
    assert_eq!(shown(&host).unwrap(), list(&ordered));
    let mut reversed = ordered.to_vec();
    reversed.reverse();
    assert_eq!(set(&list(&reversed)).unwrap(), host);
    assert_eq!(set(&list(&[])).unwrap(), []);
}

#[test]
fn lists_with_bad_entries_or_too_many_are_refused() {
    let status = |entries: &[Vec<u8>]| set(&list(entries)).err();
    assert_eq!(status(&[entry(0, 7, "")]), Some(NfsStatus::Badxdr));
    assert_eq!(status(&[entry(7, 7, "")]), Some(NfsStatus::Badxdr));
    assert_eq!(status(&[entry(1, 8, "")]), Some(NfsStatus::Inval));
    assert_eq!(status(&[entry(2, 7, "")]), Some(NfsStatus::Badowner));
    assert_eq!(status(&vec![entry(1, 7, ""); ENTRIES_MAX]), None);
    assert_eq!(status(&vec![entry(1, 7, ""); ENTRIES_MAX + 1]), Some(NfsStatus::Inval));
    let whole = list(&[entry(1, 7, ""), entry(2, 6, "1000")]);
    for end in 0..whole.len() {
        assert_eq!(set(&whole[..end]).err(), Some(NfsStatus::Badxdr), "{end}");
    }
}

#[test]
fn a_list_of_the_host_that_cannot_be_read_is_a_fault() {
    let host = set(&list(&[entry(1, 7, ""), entry(2, 6, "1000")])).unwrap();
    for bad in [
        &host[..3],
        &host[..host.len() - 1],
        &[&[3, 0, 0, 0], &host[4..]].concat(),
        &[2, 0, 0, 0, 3, 0, 7, 0, 0, 0, 0, 0],
    ] {
        assert_eq!(shown(bad), Err(NfsStatus::Serverfault), "{bad:?}");
    }
    let mut long = 2_u32.to_le_bytes().to_vec();
    long.extend(host[4..12].repeat(ENTRIES_MAX + 1));
    assert_eq!(shown(&long), Err(NfsStatus::Serverfault));
}
