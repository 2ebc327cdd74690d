use super::{Client, ClientGauges, ClientStateGauges, Clients, OpenOrLock, text};

fn gauges(number: u32) -> ClientGauges {
    ClientGauges { number, status: "confirmed".to_owned(), ..ClientGauges::default() }
}

#[test]
fn people_see_a_line_for_each_client_and_for_each_of_its_opens_and_locks() {
    let away = ClientGauges {
        name: "Linux NFSv4.2 far\u{1b}[2J".to_owned(),
        address: Some("192.0.2.7".to_owned()),
        user: Some(0),
        version: Some("4.2".to_owned()),
        lease_left_ns: 41_200_000_000,
        sessions: 1,
        slots: 64,
        slots_in_use: 2,
        opens: 1204,
        denying: 1,
        ranges: 1,
        is_back_channel_down: true,
        ..gauges(12)
    };
    let state = |what| ClientStateGauges { file: "/srv/a".to_owned(), owner: "sqlite".to_owned(), what };
    let states = vec![
        state(OpenOrLock::Open { access: "rw".to_owned(), deny: "w".to_owned() }),
        state(OpenOrLock::Open { access: "r".to_owned(), deny: "-".to_owned() }),
        state(OpenOrLock::Lock { first: 0, last: u64::MAX, is_exclusive: true }),
        state(OpenOrLock::Lock { first: 8, last: 9, is_exclusive: false }),
        state(OpenOrLock::Delegation { is_recalled: false, is_revoked: false }),
        state(OpenOrLock::Delegation { is_recalled: true, is_revoked: false }),
        state(OpenOrLock::Delegation { is_recalled: true, is_revoked: true }),
        state(OpenOrLock::Others { count: 7 }),
    ];
    let clients = vec![Client { gauges: gauges(3), states: None }, Client { gauges: away, states: Some(states) }];
    let expected = "\
waiting for 1 client of the server before, which may ask for their locks again
number  client     user  version  status     lease   open  deny  locks  wait    slots  name
     3  this host     -  -        confirmed    0 s      -     -      -     -        -
    12  192.0.2.7     0  4.2      confirmed   42 s  1,204     1      1     -  2 of 64  Linux NFSv4.2 far\\u001b[2J

client 12
  no connection carries calls to it
  open rw, denies w  /srv/a  by sqlite
  open r  /srv/a  by sqlite
  exclusive lock of the whole file  /srv/a  by sqlite
  shared lock of bytes 8 to 9  /srv/a  by sqlite
  delegation  /srv/a
  delegation that is recalled  /srv/a
  delegation that was revoked  /srv/a
  and 7 more
";
    assert_eq!(text(&Clients { missing: 1, clients }), expected);
    assert_eq!(text(&Clients { missing: 0, clients: Vec::new() }), "no client of version 4\n");
}
