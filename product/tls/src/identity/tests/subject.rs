use afflux_tls_client::Authority;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::super::{common_name, user};

#[test]
fn a_certificate_names_a_user_or_none_and_any_piece_of_it_names_no_other() {
    let authority = Authority::new();
    let of_user = authority.issue_to_user("desk", "anna@example.org");
    let der = CertificateDer::from_pem_slice(of_user.certificate.as_bytes()).unwrap();
    assert_eq!(user(&der), Some("anna@example.org"));
    let other = authority.issue("desk", afflux_tls_client::Purpose::Client);
    assert_eq!(user(&CertificateDer::from_pem_slice(other.certificate.as_bytes()).unwrap()), None);
    for end in 0..der.len() {
        let cut = CertificateDer::from(der[..end].to_vec());
        assert_eq!(user(&cut), None, "{end}");
        let mut flipped = der.to_vec();
        flipped[end] ^= 0xff;
        // The search ends for any bytes.
        user(&CertificateDer::from(flipped));
    }
}

#[test]
fn finds_the_common_name_among_others() {
    let organisation = b"\x31\x0b\x30\x09\x06\x03\x55\x04\x0a\x0c\x02Ab";
    let common = b"\x31\x0d\x30\x0b\x06\x03\x55\x04\x03\x0c\x04host";
    assert_eq!(common_name(&[&organisation[..], common].concat()).as_deref(), Some("host"));
    assert_eq!(common_name(organisation), None);
    assert_eq!(common_name(b""), None);
}

#[test]
fn takes_long_lengths_and_no_lies() {
    let long = [b"\x31\x81\x8e\x30\x81\x8b\x06\x03\x55\x04\x03\x0c\x81\x83".to_vec(), vec![b'x'; 0x83]].concat();
    assert_eq!(common_name(&long).map(|name| name.len()), Some(0x83));
    for end in 0..long.len() {
        assert_eq!(common_name(&long[..end]), None, "{end}");
    }
    assert_eq!(common_name(b"\x31\x84\xff\xff\xff\xff"), None);
}
