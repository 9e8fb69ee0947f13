"""The simulated Cloud SQL of every project, with the parts of Google's identity that a provider needs.

It speaks the REST wire of `sqladmin.googleapis.com`, v1 and v1beta4, on loop-back: `python -m devcloud.gcp`. What it
answers follows Google's reference of the Cloud SQL Admin API and recorded exchanges; docs/simulated-cloudsql.md says
what is true of it and what is not.
"""
