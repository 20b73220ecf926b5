//! A developer of agents reads the documents and connects a client.
