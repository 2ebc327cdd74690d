//! The real command, over real sockets and files, used by real clients.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod arenas;
mod backups;
mod bad_input;
mod callers;
mod checks;
mod client;
mod control;
mod crowds;
mod descriptors;
#[cfg(feature = "object")]
mod disk_caches;
mod durability;
mod eject;
mod explaining;
mod exports;
#[cfg(feature = "object")]
mod fake_store;
mod foreign_calls;
mod front_ends;
mod fronts;
mod full_disk;
mod govern;
mod hanging;
mod held_files;
mod kept_by_systemd;
mod kept_mounts;
mod kills;
mod live;
mod locks;
mod manual;
mod mappings;
mod memory;
mod mount_attacks;
mod mount_rights;
mod mount_shares;
mod mount_views;
mod mounted;
mod mounts;
mod names;
mod passed_over;
mod passed_over_elsewhere;
mod permissions;
mod power_cuts;
mod protocol;
mod random_operations;
mod restarts;
mod rpcbind;
mod scratch;
mod server;
mod service;
mod short_of_memory;
mod shutdown;
#[cfg(feature = "object")]
mod store_commands;
#[cfg(feature = "object")]
mod store_mounts;
#[cfg(feature = "object")]
mod store_server;
#[cfg(feature = "object")]
mod stores;
#[cfg(feature = "object")]
mod stores_away;
#[cfg(feature = "object")]
mod stores_refuse;
mod synchronous_mounts;
mod systemd;
mod terminal;
mod tls;
mod told_bounds;
mod tools;
mod traces;
mod trees;
#[cfg(feature = "object")]
mod volume_rights;
