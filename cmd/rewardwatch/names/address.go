package names

// LocalAddress is where the service listens, and commands call it, unless told otherwise.
const LocalAddress = "127.0.0.1:9464"
