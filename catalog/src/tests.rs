//! Scenarios over whole tables in a directory.

mod costs;
mod damage;
mod fixture;
mod index;
mod merging;
mod pages;
mod racing;
mod staging;
