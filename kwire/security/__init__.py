"""Who may do what: operations, resources and the authorizer."""
