-- Creates the address of a feed, and says whether it could: `created`, `unknown_subscription`, `too_many`, or `no_organization` when that
-- was deleted.
CREATE OR REPLACE FUNCTION feed_link_create(
  p_id text, p_organization_id text, p_hash bytea, p_subscription_id text, p_label text, p_links_max integer, p_actor json
) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_organization organizations := organization_lock(p_organization_id);
BEGIN
  IF v_organization.id IS NULL OR v_organization.deleted_at IS NOT NULL THEN
    RETURN 'no_organization';
  ELSIF p_subscription_id IS NOT NULL AND NOT EXISTS (SELECT FROM jobs WHERE id = p_subscription_id
      AND organization_id = p_organization_id AND check_seconds IS NOT NULL AND deleted_at IS NULL) THEN
    RETURN 'unknown_subscription';
  ELSIF (SELECT count(*) FROM feed_links WHERE organization_id = p_organization_id) >= p_links_max THEN
    RETURN 'too_many';
  END IF;
  INSERT INTO feed_links (id, organization_id, hash, subscription_id, label, created_at)
    VALUES (p_id, p_organization_id, p_hash, p_subscription_id, p_label, clock_now());
  PERFORM audit_record(p_actor, 'feed_link.created', p_organization_id, p_id, NULL,
    jsonb_build_object('subscription', p_subscription_id, 'label', p_label));
  RETURN 'created';
END $$;
