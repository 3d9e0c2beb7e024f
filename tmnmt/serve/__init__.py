"""The service that tools speak to: `tmnmt serve`.

connection -> dialect       its JSON becomes a record of the service, and the answer its JSON
           -> service       who may, which model, which memories, limits
           -> queue         one a model: its thread alone decodes, for all who wait"""
