//! Scenarios over whole tables in a directory.

mod bits;
mod checkpoints;
mod compaction;
mod costs;
mod damage;
mod deletion;
mod fixture;
mod history;
mod index;
mod key_objects;
mod merging;
#[cfg(feature = "s3")]
mod over_s3;
mod pages;
mod parquet_export;
mod part_cache;
mod prints;
mod racing;
mod sketches;
mod staging;
