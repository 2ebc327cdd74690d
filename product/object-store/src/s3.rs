//! The connection to an S3 store, from options, variables and a profile.
//!
//! Owns: which of them wins, and the texts that are refused.
//! Does not own: the files (`profile`), HTTP itself and when keys are read again (`transport`).
//! Invariants: options win over variables, variables over files. A text about keys, addresses or certificates is used,
//! or refused with the reason.

use object_store::ClientConfigKey;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use reqwest::Certificate;

use crate::options::{Keys, Options, check_endpoint, client, is_plain};
use crate::profile::{Profile, Variables};

/// Variables that lead to keys. With one of them, the files are not asked.
const KEYS_ELSEWHERE: [&str; 4] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
];

/// The variable of S3 alone. It wins over the one of all services.
const S3_ENDPOINT: &str = "AWS_ENDPOINT_URL_S3";

/// Variables, and values of a profile, that choose another address of AWS. `--endpoint` does that here.
const OTHER_ADDRESSES: [(&str, &str); 2] =
    [("AWS_USE_FIPS_ENDPOINT", "use_fips_endpoint"), ("AWS_USE_DUALSTACK_ENDPOINT", "use_dualstack_endpoint")];
const OTHER_ADDRESSES_OF_S3: [&str; 2] = ["s3.use_dualstack_endpoint", "s3.use_accelerate_endpoint"];

/// Values of a profile that lead to keys by another program or another account.
const KEYS_OF_ROLES: [&str; 3] = ["source_profile", "credential_source", "web_identity_token_file"];
const KEYS_OF_PROGRAMS: [&str; 4] = ["credential_process", "sso_start_url", "sso_session", "login_session"];

/// Texts that become parts of a request.
const HEADER_TEXTS: [(&str, AmazonS3ConfigKey); 4] = [
    ("access key id", AmazonS3ConfigKey::AccessKeyId),
    ("secret access key", AmazonS3ConfigKey::SecretAccessKey),
    ("session token", AmazonS3ConfigKey::Token),
    ("region", AmazonS3ConfigKey::Region),
];

/// The sources of a connection's settings.
struct Sources<'a> {
    options: &'a Options,
    variables: &'a Variables,
    profile: Profile,
}

/// The settings of a connection. The address names the bucket, whatever a variable says.
pub(crate) fn s3(bucket: &str, options: &Options, variables: &Variables) -> Result<AmazonS3Builder, String> {
    let sources = Sources { options, variables, profile: Profile::read(variables)? };
    let builder = sources.of_variables(AmazonS3Builder::new())?.with_bucket_name(bucket);
    let mut builder = sources.with_keys(builder)?;
    if known(&builder, AmazonS3ConfigKey::Region).is_none()
        && let Some(region) =
            known(&builder, AmazonS3ConfigKey::DefaultRegion).or(sources.profile.get("region").map(str::to_owned))
    {
        builder = builder.with_region(region);
    }
    let named = sources.endpoint();
    if let Some((name, endpoint)) = &named {
        check_endpoint(name, endpoint)?;
        builder = builder.with_endpoint(endpoint);
    }
    let endpoint = named.map(|(_, endpoint)| endpoint);
    sources.check_unused(endpoint.as_deref())?;
    for (name, key) in HEADER_TEXTS {
        let has_control = known(&builder, key).is_some_and(|text| text.chars().any(|it| it.is_control() || it == ' '));
        if has_control {
            return Err(format!("the {name} has a blank, a line break or another control character; write it without"));
        }
    }
    // A connection with TLS checks each byte, so the signature need not cover the body: its hash takes 30 % of a
    // writer's processor time.
    if !sources.has("AWS_UNSIGNED_PAYLOAD") {
        let wants_signed = sources.profile.is_on("s3.payload_signing_enabled");
        builder = builder.with_unsigned_payload(!is_plain(endpoint.as_deref()) && !wants_signed);
    }
    // Objects are removed one by one: not every store has the request for many, and a sweep is in no hurry.
    Ok(builder.with_disable_bulk_delete(true).with_client_options(client(endpoint.as_deref())))
}

fn known(builder: &AmazonS3Builder, key: AmazonS3ConfigKey) -> Option<String> {
    builder.get_config_value(&key)
}

impl Sources<'_> {
    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn has(&self, name: &str) -> bool {
        self.variable(name).is_some()
    }

    fn is_on(&self, name: &str) -> bool {
        self.variable(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Gives all variables to the connection but those of addresses.
    fn of_variables(&self, mut builder: AmazonS3Builder) -> Result<AmazonS3Builder, String> {
        let is_set = |(name, value): &(&String, &String)| name.starts_with("AWS_") && !value.is_empty();
        for (name, value) in self.variables.iter().filter(is_set) {
            match name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
                Ok(AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp)) | Err(_) => {}
                Ok(AmazonS3ConfigKey::Client(_)) => return Err(no_effect(name)),
                Ok(AmazonS3ConfigKey::Endpoint | AmazonS3ConfigKey::S3Endpoint) => {}
                Ok(key) => builder = builder.with_config(key, value),
            }
        }
        Ok(match self.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT") {
            Some(endpoint) => builder.with_metadata_endpoint(endpoint),
            None => builder,
        })
    }

    fn with_keys(&self, builder: AmazonS3Builder) -> Result<AmazonS3Builder, String> {
        if let Some(Keys { id, secret }) = &self.options.keys {
            return Ok(builder.with_access_key_id(id).with_secret_access_key(secret));
        }
        both("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", |name| self.variable(name))?;
        if KEYS_ELSEWHERE.into_iter().any(|name| self.has(name)) {
            return Ok(builder);
        }
        let profile = |name| self.profile.get(name);
        if profile("role_arn").is_some()
            && let Some(source) = KEYS_OF_ROLES.into_iter().find(|name| profile(name).is_some())
        {
            return Err(format!("the profile takes a role by '{source}', which is not done here; {SET_KEYS}"));
        }
        if let Some((id, secret)) =
            both("aws_access_key_id", "aws_secret_access_key", profile).map_err(|why| format!("the profile: {why}"))?
        {
            let builder = builder.with_access_key_id(id).with_secret_access_key(secret);
            return Ok(match profile("aws_session_token") {
                Some(token) => builder.with_token(token),
                None => builder,
            });
        }
        if let Some(name) = KEYS_OF_PROGRAMS.into_iter().find(|name| profile(name).is_some()) {
            return Err(format!("the profile gets its keys from another program ('{name}'); {SET_KEYS}"));
        }
        let is_unsigned = known(&builder, AmazonS3ConfigKey::SkipSignature).is_some_and(|value| value == "true");
        if self.is_on("AWS_EC2_METADATA_DISABLED") && !is_unsigned {
            return Err(format!(
                "there are no keys, and AWS_EC2_METADATA_DISABLED keeps the instance from being asked; {SET_KEYS}"
            ));
        }
        Ok(builder)
    }

    /// The address of the store, with the name of its source.
    fn endpoint(&self) -> Option<(&'static str, String)> {
        let is_ignored =
            self.is_on("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") || self.profile.is_on("ignore_configured_endpoint_urls");
        let configured = |endpoint: Option<&str>| endpoint.filter(|_| !is_ignored).map(str::to_owned);
        let (variable, profile) = (|name| self.variable(name), &self.profile);
        let endpoints = [
            ("--endpoint", self.options.endpoint.clone()),
            (S3_ENDPOINT, configured(variable(S3_ENDPOINT))),
            ("AWS_ENDPOINT_URL", configured(variable("AWS_ENDPOINT_URL"))),
            ("AWS_ENDPOINT", configured(variable("AWS_ENDPOINT"))),
            ("endpoint_url of the profile's services", configured(profile.of_services("s3.endpoint_url"))),
            ("endpoint_url below s3 of the profile", configured(profile.get("s3.endpoint_url"))),
            ("endpoint_url of the profile", configured(profile.get("endpoint_url"))),
        ];
        endpoints.into_iter().find_map(|(name, endpoint)| Some((name, endpoint?)))
    }

    /// Refuses what would lead requests elsewhere if it had an effect.
    fn check_unused(&self, endpoint: Option<&str>) -> Result<(), String> {
        let profile = &self.profile;
        if endpoint.is_none() {
            let of_variables = OTHER_ADDRESSES.into_iter().filter(|(name, _)| self.is_on(name)).map(|(name, _)| name);
            let of_profile = OTHER_ADDRESSES.into_iter().map(|(_, name)| name).chain(OTHER_ADDRESSES_OF_S3);
            if let Some(name) = of_variables.chain(of_profile.filter(|name| profile.is_on(name))).next() {
                return Err(format!("{name} has no effect here; name that address by --endpoint, or unset it"));
            }
        }
        if profile.get("s3.addressing_style") == Some("virtual") && !self.has("AWS_VIRTUAL_HOSTED_STYLE_REQUEST") {
            return Err(
                "the profile's addressing_style has no effect here; set AWS_VIRTUAL_HOSTED_STYLE_REQUEST=true, with \
                        the bucket in the --endpoint, or remove it"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

const SET_KEYS: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";

/// The certificates that a variable or the profile adds to those of the system.
pub(crate) fn certificates(variables: &Variables) -> Result<Vec<Certificate>, String> {
    let profile = Profile::read(variables)?;
    let of_variable = variables.get("AWS_CA_BUNDLE").map(String::as_str).filter(|path| !path.is_empty());
    let bundles = [("AWS_CA_BUNDLE", of_variable), ("ca_bundle of the profile", profile.get("ca_bundle"))];
    let Some((name, path)) = bundles.into_iter().find_map(|(name, path)| Some((name, path?))) else {
        return Ok(Vec::new());
    };
    let wrong = |why: &str| format!("{name}: {path} {why}");
    let text = std::fs::read(path).map_err(|error| wrong(&format!("cannot be read: {error}")))?;
    match Certificate::from_pem_bundle(&text) {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(wrong("has no certificates in PEM")),
    }
}

/// The two halves of a pair of keys, or nothing. One alone is refused.
fn both<'a>(
    id: &'static str,
    secret: &'static str,
    get: impl Fn(&'static str) -> Option<&'a str>,
) -> Result<Option<(&'a str, &'a str)>, String> {
    match (get(id), get(secret)) {
        (Some(id), Some(secret)) => Ok(Some((id, secret))),
        (None, None) => Ok(None),
        (Some(_), None) => Err(format!("{id} is set, and {secret} is not; set both")),
        (None, Some(_)) => Err(format!("{secret} is set, and {id} is not; set both")),
    }
}

/// The reason against a variable about the connection itself.
pub(crate) fn no_effect(name: &str) -> String {
    format!("{name} has no effect here; unset it (HTTPS_PROXY and NO_PROXY name a proxy, SSL_CERT_FILE certificates)")
}

#[cfg(test)]
mod tests;
