mod subject;

use afflux_tls_client::{Authority, Issued, Purpose};

use super::{BadIdentity, TlsIdentity};

fn identity(issued: &Issued, clients: Option<&Authority>) -> TlsIdentity {
    TlsIdentity {
        certificates: issued.certificate.clone().into_bytes(),
        key: issued.key.clone().into_bytes(),
        clients: clients.map(|authority| authority.certificate.clone().into_bytes()),
    }
}

/// A change of a good identity, and the beginning of the refusal.
type Spoiled<'a> = (&'a dyn Fn(&mut TlsIdentity), &'a str);

#[test]
fn says_which_part_is_wrong_and_why() {
    let authority = Authority::new();
    let own = authority.issue("server", Purpose::Server);
    let good = identity(&own, Some(&authority));
    good.certified().unwrap();
    let of = |change: &dyn Fn(&mut TlsIdentity)| {
        let mut changed = good.clone();
        change(&mut changed);
        match changed.certified().unwrap_err() {
            BadIdentity::Certificate(why) => format!("certificate: {why}"),
            BadIdentity::Key(why) => format!("key: {why}"),
            BadIdentity::Clients(why) => format!("clients: {why}"),
        }
    };
    let table: [Spoiled<'_>; 9] = [
        (&|it| it.certificates.clear(), "certificate: it has no certificate in PEM form (BEGIN CERTIFICATE)"),
        (&|it| it.certificates = it.key.clone(), "certificate: it has no certificate in PEM form"),
        (&|it| it.certificates.truncate(200), "certificate: it is no PEM text"),
        (
            &|it| it.key = it.certificates.clone(),
            "key: it has no key in PEM form (BEGIN PRIVATE KEY, without a password)",
        ),
        (
            &|it| it.key = authority.issue("other", Purpose::Server).key.into(),
            "key: it is not the key of the certificate",
        ),
        (&|it| *it = identity(&authority.issue("old", Purpose::ServerInThePast), None), "certificate: it expired "),
        (
            &|it| *it = identity(&authority.issue("client", Purpose::Client), None),
            "certificate: it is not for a server",
        ),
        (&|it| it.clients = Some(Vec::new()), "clients: it has no certificate in PEM form"),
        (
            &|it| it.clients = Some(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec()),
            "clients: it has a certificate that cannot be read",
        ),
    ];
    for (change, expected) in table {
        let why = of(change);
        assert!(why.starts_with(expected), "{why}, not {expected}");
    }
}

#[test]
fn the_first_certificate_of_a_chain_to_expire_counts() {
    let authority = Authority::new();
    let own = authority.issue("server", Purpose::ServerUntil2077);
    let expires = |of: &TlsIdentity| of.certified().unwrap().expires_s;
    let mut alone = identity(&own, None);
    const JANUARY_2077_S: u64 = 3_376_684_800;
    assert_eq!(expires(&alone), Some(JANUARY_2077_S));
    // The authority's certificate expires with the year 4096, and one from the past has expired.
    alone.certificates.extend(authority.certificate.as_bytes());
    assert_eq!(expires(&alone), Some(JANUARY_2077_S));
    alone.certificates.extend(authority.issue("old", Purpose::ServerInThePast).certificate.as_bytes());
    const JANUARY_2021_S: u64 = 1_609_459_200;
    assert_eq!(expires(&alone), Some(JANUARY_2021_S));
}
