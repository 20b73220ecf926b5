//! Walks of eight people in a browser, each from its first page to its goal without leaving the site.

mod administrator;
mod agent_developer;
mod buyer;
mod csv_owner;
mod moderator;
mod operator;
mod reader;
mod visitor;
