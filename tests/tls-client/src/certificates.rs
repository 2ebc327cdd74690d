//! Authorities and the certificates that they issue.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType, date_time_ymd,
};

/// The object of a user's name among alternative names.
const USER_NAME: [u64; 10] = [1, 3, 6, 1, 4, 1, 2238, 1, 1, 1];
const DAY: Duration = Duration::from_secs(86_400);

/// An authority that tests trust.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, as PEM text.
    pub certificate: String,
}

/// A certificate and its key, as PEM text.
#[derive(Clone)]
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

/// The use of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// A server on loopback.
    Server,
    /// A server on loopback, until 2077.
    ServerUntil2077,
    /// A server on loopback, for four days from now.
    ServerForFourDays,
    /// A server on loopback, some years ago.
    ServerInThePast,
    /// A client.
    Client,
    /// A client, some years ago.
    ClientInThePast,
}

impl Authority {
    /// A new one.
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        let key = KeyPair::generate().unwrap();
        // Two authorities have two names.
        let number: String = key.public_key_raw().iter().rev().take(8).map(|byte| format!("{byte:02x}")).collect();
        params.distinguished_name.push(DnType::CommonName, format!("tests {number}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), certificate }
    }

    /// A certificate with this name.
    pub fn issue(&self, name: &str, purpose: Purpose) -> Issued {
        self.issue_to(name, None, purpose)
    }

    /// A client's certificate with this name, which also names a user.
    pub fn issue_to_user(&self, name: &str, user: &str) -> Issued {
        self.issue_to(name, Some(user), Purpose::Client)
    }

    fn issue_to(&self, name: &str, user: Option<&str>, purpose: Purpose) -> Issued {
        let mut params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let of_user = user.map(|user| SanType::OtherName((USER_NAME.to_vec(), user.into())));
        params.subject_alt_names.extend(of_user);
        params.extended_key_usages = vec![match purpose {
            Purpose::Client | Purpose::ClientInThePast => ExtendedKeyUsagePurpose::ClientAuth,
            _ => ExtendedKeyUsagePurpose::ServerAuth,
        }];
        if matches!(purpose, Purpose::ServerInThePast | Purpose::ClientInThePast) {
            (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
        }
        match purpose {
            Purpose::ServerUntil2077 => params.not_after = date_time_ymd(2077, 1, 1),
            Purpose::ServerForFourDays => params.not_after = (SystemTime::now() + 4 * DAY + DAY / 2).into(),
            _ => {}
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Issued { certificate, key: key.serialize_pem() }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}
